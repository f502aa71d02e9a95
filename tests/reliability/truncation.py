#!/usr/bin/env python3
"""Damaged and whole recordings in every container and codec that ffmpeg writes, through audio-decode.

usage: tests/reliability/truncation.py [--count N] [--seed N] [--jobs N] [--tool FILE] [--format NAME]

Makes N whole recordings, and one damaged copy of each: cut, a part zeroed, bytes flipped, or a part
removed. Half of them are read from files, half from pipes; a third was written to a pipe too.
- A false alarm: a whole recording that ends with an error or a warning.
- A silent loss: more than 0.1 s of what the container states is missing, and the exit status is 0.
Losses in formats that state no length are counted apart. Prints a table; exits with 1 if there is a
false alarm or a silent loss. Needs ffmpeg. Not part of tests/run.sh: 1,000 take minutes.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BOUND = 0.1  # seconds
ALL = (8000, 16000, 22050, 44100, 48000)

# name, file ending, options of ffmpeg, its muxer's name for a pipe (None: it must seek), whether the
# container states a length in a file, sample rates
Format = collections.namedtuple("Format", "name ending options muxer states rates")
FORMATS = [Format(*row) for row in [
    ("mp3", "mp3", "", "mp3", True, ALL),
    ("mp3 variable", "mp3", "-q:a 4", "mp3", True, ALL),
    ("mp3 without Xing", "mp3", "-write_xing 0", "mp3", False, ALL),
    ("flac", "flac", "", "flac", True, ALL),
    ("ogg vorbis", "ogg", "-c:a libvorbis", "ogg", False, ALL),
    ("ogg opus", "opus", "-c:a libopus", "ogg", False, (8000, 16000, 48000)),
    ("ogg flac", "oga", "-c:a flac", "ogg", False, ALL),
    ("webm opus", "webm", "-c:a libopus", "webm", True, (8000, 16000, 48000)),
    ("webm vorbis", "webm", "-c:a libvorbis", "webm", True, ALL),
    ("mka aac", "mka", "-c:a aac", "matroska", True, ALL),
    ("mka mp3", "mka", "-c:a libmp3lame", "matroska", True, ALL),
    ("mka flac", "mka", "-c:a flac", "matroska", True, ALL),
    ("mka pcm", "mka", "-c:a pcm_s16le", "matroska", True, ALL),
    ("mka ac3", "mka", "-c:a ac3", "matroska", True, (44100, 48000)),
    ("m4a aac", "m4a", "-c:a aac", None, True, ALL),
    ("m4a alac", "m4a", "-c:a alac", None, True, ALL),
    ("mp4 faststart", "mp4", "-c:a aac -movflags +faststart", None, True, ALL),
    ("mp4 opus", "mp4", "-c:a libopus", None, True, (48000,)),
    ("mp4 fragments", "mp4", "-c:a aac -movflags frag_keyframe+empty_moov -frag_duration 1000000",
     "mp4", False, ALL),
    ("mov pcm", "mov", "-c:a pcm_s16le", None, True, ALL),
    ("3gp aac", "3gp", "-c:a aac", None, True, ALL),
    ("wav s16", "wav", "", "wav", True, ALL),
    ("wav f32", "wav", "-c:a pcm_f32le", "wav", True, ALL),
    ("wav u8", "wav", "-c:a pcm_u8", "wav", True, ALL),
    ("wav s24", "wav", "-c:a pcm_s24le", "wav", True, ALL),
    ("wav rf64", "wav", "-rf64 always", "wav", True, ALL),
    ("wav adpcm ms", "wav", "-c:a adpcm_ms", "wav", True, ALL),
    ("wav adpcm ima", "wav", "-c:a adpcm_ima_wav", "wav", True, ALL),
    ("wav mulaw", "wav", "-c:a pcm_mulaw", "wav", True, ALL),
    ("wav mp3", "wav", "-c:a libmp3lame", "wav", True, ALL),
    ("w64", "w64", "", "w64", True, ALL),
    ("aiff", "aiff", "", None, True, ALL),
    ("aiff f32", "aiff", "-c:a pcm_f32be", None, True, ALL),
    ("caf pcm", "caf", "-c:a pcm_s16be", "caf", True, ALL),
    ("caf alac", "caf", "-c:a alac", None, True, ALL),
    ("au", "au", "", "au", True, ALL),
    ("wma 2", "wma", "-c:a wmav2", "asf", True, (22050, 44100, 48000)),
    ("wma 1", "asf", "-c:a wmav1", "asf", True, (22050, 44100, 48000)),
    ("avi mp3", "avi", "-c:a libmp3lame", "avi", True, ALL),
    ("avi pcm", "avi", "-c:a pcm_s16le", "avi", True, ALL),
    ("flv mp3", "flv", "-c:a libmp3lame", "flv", True, (22050, 44100)),
    ("wv", "wv", "", "wv", True, ALL),
    ("tta", "tta", "", "tta", True, ALL),
    ("rm ac3", "rm", "-c:a ac3", "rm", True, (44100, 48000)),
    ("mp2", "mp2", "", "mp2", False, (22050, 44100, 48000)),
    ("ac3", "ac3", "", "ac3", False, (44100, 48000)),
    ("eac3", "eac3", "", "eac3", False, (44100, 48000)),
    ("aac adts", "aac", "-c:a aac", "adts", False, ALL),
    ("dts", "dts", "-c:a dca -strict -2", "dts", False, (44100, 48000)),
    ("mpegts aac", "ts", "-c:a aac", "mpegts", False, ALL),
    ("mpegts mp2", "ts", "-c:a mp2", "mpegts", False, (44100, 48000)),
    ("mpeg ps", "mpg", "-c:a mp2", "mpeg", False, (44100, 48000)),
    ("nut", "nut", "-c:a libvorbis", "nut", False, ALL),
    ("gsm", "gsm", "-ac 1", "gsm", False, (8000,)),
    ("sox", "sox", "", "sox", False, ALL),
    ("voc", "voc", "-c:a pcm_u8", "voc", False, ALL),
    ("adx", "adx", "", "adx", False, (44100, 48000)),
]]


def ffmpeg(arguments):
    """Runs ffmpeg and returns what it writes to stdout."""
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return done.stdout


def make(chance, form, source, path):
    """Writes one recording; returns whether it went through a pipe."""
    seconds, start = chance.uniform(2, 25), chance.uniform(0, 60)
    common = ["-ss", f"{start:.3f}", "-t", f"{seconds:.3f}", "-i", source, "-ar",
              str(chance.choice(form.rates)), "-ac", str(chance.choice((1, 2))),
              *form.options.split()]
    piped = form.muxer is not None and chance.random() < 1 / 3
    # Not even libav reads what ffmpeg writes of these to a pipe without loss.
    if not piped:
        ffmpeg(common + [path])
    else:
        with open(path, "wb") as out:
            out.write(ffmpeg(common + ["-f", form.muxer, "-"]))
    return piped


def damage(chance, data):
    """Returns a damaged copy, and how it was damaged; the header is left alone."""
    kind = chance.choice(("cut", "zeroed", "flipped", "removed"))
    size, first = len(data), min(4096, len(data) // 8)
    begin = chance.randrange(first, size)
    end = min(size, begin + int((size - first) * chance.uniform(0.02, 0.5)))
    if kind == "cut":
        return data[:begin], f"cut at byte {begin}"
    if kind == "zeroed":
        return data[:begin] + bytes(end - begin) + data[end:], f"zeroed [{begin}, {end})"
    if kind == "removed":
        return data[:begin] + data[end:], f"removed [{begin}, {end})"
    count = chance.choice((1, 10, 100, 1000))
    changed = bytearray(data)
    for _ in range(count):
        changed[chance.randrange(begin, end)] ^= 1 << chance.randrange(8)
    return bytes(changed), f"{count} bits flipped in [{begin}, {end})"


def samples_in(stream):
    """The number of samples in an audio stream."""
    total, at = 0, 0
    while at < len(stream):
        length, = struct.unpack_from("<Q", stream, at)
        header = json.loads(stream[at + 8:at + 8 + length])
        tensors = [t for name, t in header.items() if name != "__metadata__"]
        total += sum(t["shape"][0] for t in tensors)
        at += 8 + length + max((t["data_offsets"][1] for t in tensors), default=0)
    return total


def decode(tool, path, from_pipe):
    """Runs audio-decode; returns seconds, exit status and messages."""
    if from_pipe:
        with open(path, "rb") as file:
            data = file.read()
        done = subprocess.run([tool, "-"], input=data, capture_output=True)
    else:
        done = subprocess.run([tool, path], capture_output=True)
    message = done.stderr.decode("utf-8", "replace").strip()
    return samples_in(done.stdout) / 16000, done.returncode, message


def one(index, options, source, folder):
    """Makes recording `index` and its damaged copy; returns what became of them."""
    chance = random.Random(options.seed * 1000003 + index)
    chosen = [f for f in FORMATS if options.format in (None, f.name)]
    form = chosen[index * 5 % len(chosen)]
    path = os.path.join(folder, f"{index}.{form.ending}")
    piped = make(chance, form, source, path)
    from_pipe = chance.random() < 0.5
    whole, status, message = decode(options.tool, path, from_pipe)
    with open(path, "rb") as file:
        data = file.read()
    broken, how = damage(chance, data)
    with open(path, "wb") as file:
        file.write(broken)
    found, broken_status, broken_message = decode(options.tool, path, from_pipe)
    os.remove(path)
    lost = whole - found > BOUND
    states = form.states and not piped
    place = "pipe" if from_pipe else "file"
    described = f"{index} {form.name}, {'written to a pipe, ' if piped else ''}read from a {place}"
    notes = []
    if status != 0 or message:
        notes.append(f"false alarm: {described}: {message}")
    if lost and broken_status == 0 and states:
        notes.append(f"silent loss: {described}: {how}: {found:.2f} of {whole:.2f} s")
    outcome = ("named" if broken_status != 0 else "kept" if not lost else
               "silent" if states else "unstated")
    return form.name, status != 0 or bool(message), outcome, notes


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="recordings of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="index of the first recording")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--format", help="only this one", choices=[f.name for f in FORMATS])
    parser.add_argument("--tool", default=os.path.join(ROOT, "build", "bin", "audio-decode"))
    options = parser.parse_args()
    table = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.wav")
        ffmpeg(["-stream_loop", "4", "-i", os.path.join(ROOT, "samples", "story.mp3"), "-ac", "2",
                "-ar", "48000", source])
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            work = [pool.submit(one, i, options, source, folder)
                    for i in range(options.first, options.first + options.count)]
            for done in work:
                name, alarm, outcome, notes = done.result()
                table[name].update({"whole": 1, "alarms": int(alarm), outcome: 1})
                for note in notes:
                    print(note, flush=True)
    columns = ("whole", "alarms", "named", "kept", "unstated", "silent")
    print("\n" + " " * 18 + "".join(f"{column:>10}" for column in columns))
    for name in [f.name for f in FORMATS if f.name in table]:
        print(f"{name:18}" + "".join(f"{table[name][column]:10}" for column in columns))
    total = sum(table.values(), collections.Counter())
    print(f"{'all':18}" + "".join(f"{total[column]:10}" for column in columns))
    print(f"{total['silent']} silent losses in {options.count} damaged recordings, "
          f"{total['alarms']} false alarms on {options.count} whole ones")
    return 1 if total["silent"] or total["alarms"] else 0


if __name__ == "__main__":
    sys.exit(main())
