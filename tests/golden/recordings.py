"""Recordings for the tests, assembled by rule from the 16 kHz WAV files of samples/.

A recording is (kind, seed, seconds); nothing is stored but these and a checksum.
tests/support/recordings.cc does the same in C++: every step is exact (integers of 64 bits; the
only step with IEEE doubles is floor(seconds * 16000)), so both give the same 16-bit samples.

    pip install numpy
    python3 tests/golden/recordings.py KIND SEED SECONDS OUT.wav    # writes one, to play it

The rules, in the order in which they draw from the generator (splitmix64 started at the seed), for
n = floor(seconds * 16000) samples, all of them 0 at first:

speech: the noise's peak is NOISE_PEAKS[draw % 10]. Then, until the position reaches n:
    a. u = draw % 100: no gap and nothing drawn when u < 12; else the limit is 1 s (u < 72),
       3 s (u < 94) or 8 s, and the gap is draw % (limit * 16000) samples;
    b. if seconds > 60, one draw more: when draw % 24 == 0, the gap grows by 480000 + draw % 160000;
    c. a clip, CLIPS[draw % 18], and its gain, GAINS[draw % 6]: the clip's samples, each
       (sample * gain) >> 8, are added from the position on; what passes n is cut.
    Then noise is added to every sample from the first: (draw >> 33) % (2 * peak + 1) - peak; with a
    peak of 0 nothing is drawn.
drowned: as speech, but the noise's peak is 6000 and no draw chooses it.
babble: six times the loop of speech over the same samples (never with rule b), no noise.
loud_noise, quiet_noise, silence: noise alone with a peak of 20000, 327 (0.01 of full scale), 0.
tones: one after another until the end: 1600 + draw % 6400 samples of 200 + draw % 1800 Hz, all with
    the amplitude 12000.
chords: one after another until the end: 4000 + draw % 8000 samples; three notes, each
    NOTES[draw % 12] << (draw % 2) Hz, of the amplitude 7000 falling in a straight line to 0:
    (wave * 7000 * (length - i) / length) >> 15, the division rounding towards minus infinity.
A tone's wave is two parabolas, close to a sine: with a phase of 32 bits that begins at 0 and steps
    by floor(Hz * 2^32 / 16000), h = (phase >> 16) & 32767 gives (h * (32768 - h)) >> 13, negative
    where the phase's top bit is set.
Last, samples are clamped to 16 bits.
"""

import pathlib
import struct
import sys
import wave as wave_file

import numpy as np

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "samples"
RATE = 16000
MASK = (1 << 64) - 1

CLIPS = (
    "harbour.wav",
    "road.wav",
    "minister.wav",
    "hat.wav",
    "lights.wav",
    "mountain.wav",
    "alarm.wav",
    "sea.wav",
    "prices.wav",
    "key.wav",
    "train.wav",
    "music.wav",
    "stranger.wav",
    "answer.wav",
    "nacht.wav",
    "vater.wav",
    "maison.wav",
    "roi.wav",
)
NOISE_PEAKS = (0, 0, 4, 8, 16, 32, 64, 96, 128, 200)
GAINS = (128, 192, 224, 256, 288, 320)
NOTES = (196, 220, 247, 262, 294, 330, 349, 392, 440, 494, 523, 587)


class SplitMix64:
    """Sebastiano Vigna's splitmix64: the state steps by a constant, the output is a mix of it."""

    def __init__(self, seed):
        self.state = seed & MASK

    def draw(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def draws(self, count):
        """The next `count` outputs as an array of uint64."""
        with np.errstate(over="ignore"):
            steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            z = np.uint64(self.state) + steps
            self.state = int(z[-1]) if count else self.state
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return z ^ (z >> np.uint64(31))


def read_wav(path):
    """The samples of a 16-bit mono 16 kHz WAV file with a header of 44 bytes."""
    data = path.read_bytes()
    form = struct.unpack("<4s4xIHHIIHH4s", data[8:40])
    if form != (b"WAVE", 16, 1, 1, RATE, 2 * RATE, 2, 16, b"data"):
        raise ValueError(f"{path}: not a plain 16 kHz WAV file")
    return np.frombuffer(data, dtype="<i2", offset=44).astype(np.int64)


def noise(generator, count, peak):
    """Uniform integers in -peak .. peak."""
    if peak == 0:
        return np.zeros(count, dtype=np.int64)
    draws = (generator.draws(count) >> np.uint64(33)).astype(np.int64)
    return draws % (2 * peak + 1) - peak


def add_clip(samples, position, clip, gain):
    """Adds a clip at a position, cut at the end; returns the position after it."""
    end = min(len(samples), position + len(clip))
    if position < end:
        samples[position:end] += (clip[: end - position] * gain) >> 8
    return position + len(clip)


def add_speech(samples, generator, long_gaps, laid):
    position = 0
    while position < len(samples):
        u = generator.draw() % 100
        limit = 0 if u < 12 else 1 if u < 72 else 3 if u < 94 else 8
        if limit > 0:
            position += generator.draw() % (limit * RATE)
        if long_gaps and generator.draw() % 24 == 0:
            position += 30 * RATE + generator.draw() % (10 * RATE)
        name = CLIPS[generator.draw() % len(CLIPS)]
        gain = GAINS[generator.draw() % len(GAINS)]
        begin = position
        position = add_clip(samples, begin, read_wav(SAMPLES / name), gain)
        laid.append((name, begin, position))


def wave(hertz, count):
    """A tone of `count` samples between -32768 and 32768."""
    step = (hertz << 32) // RATE
    phase = (np.arange(count, dtype=np.int64) * step) & 0xFFFFFFFF
    h = (phase >> 16) & 32767
    y = (h * (32768 - h)) >> 13
    return np.where(phase >> 31, -y, y)


def add_tones(samples, generator):
    position = 0
    while position < len(samples):
        length = 1600 + generator.draw() % 6400
        tone = (wave(200 + generator.draw() % 1800, length) * 12000) >> 15
        position = add_clip(samples, position, tone, 256)


def add_chords(samples, generator):
    position = 0
    while position < len(samples):
        length = 4000 + generator.draw() % 8000
        falling = length - np.arange(length, dtype=np.int64)
        chord = np.zeros(length, dtype=np.int64)
        for _ in range(3):
            hertz = NOTES[generator.draw() % len(NOTES)] << (generator.draw() % 2)
            chord += (wave(hertz, length) * 7000 * falling // length) >> 15
        position = add_clip(samples, position, chord, 256)


def recording(kind, seed, seconds, laid=None):
    """The int16 samples of a recording. To the list `laid`, (name, begin, end) of each of its clips
    is added, where it would end if it were not cut."""
    laid = [] if laid is None else laid
    generator = SplitMix64(seed)
    samples = np.zeros(int(seconds * RATE), dtype=np.int64)
    peak = 0
    if kind == "speech":
        peak = NOISE_PEAKS[generator.draw() % len(NOISE_PEAKS)]
        add_speech(samples, generator, seconds > 60, laid)
    elif kind == "drowned":
        peak = 6000
        add_speech(samples, generator, seconds > 60, laid)
    elif kind == "babble":
        for _ in range(6):
            add_speech(samples, generator, False, laid)
    elif kind == "tones":
        add_tones(samples, generator)
    elif kind == "chords":
        add_chords(samples, generator)
    else:
        peak = {"loud_noise": 20000, "quiet_noise": 327, "silence": 0}[kind]
    samples += noise(generator, len(samples), peak)
    return np.clip(samples, -32768, 32767).astype(np.int16)


def as_float(samples):
    return samples.astype(np.float32) / np.float32(32768)


def checksum(samples):
    """FNV-1a, 64 bits, of the samples' bytes (little-endian), as 16 hexadecimal digits."""
    value = 0xCBF29CE484222325
    for byte in samples.astype("<i2").tobytes():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return f"{value:016x}"


def main():
    kind, seed, seconds, path = sys.argv[1:]
    samples = recording(kind, int(seed), float(seconds))
    with wave_file.open(path, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    print(kind, seed, seconds, len(samples), checksum(samples))


if __name__ == "__main__":
    main()
