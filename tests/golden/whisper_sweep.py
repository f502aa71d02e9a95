"""openai-whisper's transcribe() on the demo model over its options, in pairs: whisper_sweep.json.

    pip install torch numpy numba safetensors tiktoken openai-whisper==20250625
    python3 tests/golden/whisper_sweep.py [JOBS]        # processes side by side, default 2

float32 on the CPU, temperature 0. An hour of one core. 60 recordings of 1 s to 10 min, assembled by
rule (recordings.py); their options are drawn so that any two values of two options, where they can
be used together, meet in some recording (pairwise). The file:

recordings     as in whisper_transcribe.json, without margins in the windows. A segment has its
               words, [word, start, end, probability], where word_timestamps is among the options
"""

import itertools
import json
import multiprocessing
import pathlib
import sys
import time

import torch
import whisper

import recordings
import whisper_demo
import whisper_transcribe as base

OUTPUT = pathlib.Path(__file__).with_suffix(".json")
# Recordings whose text hangs on a near-tie, replaced: the seed is FIRST_SEED + the place otherwise.
FIRST_SEED = 1001
REPLACED = {}

SECONDS = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24),
    *(25, 26, 27, 28, 29, 30, 31, 32, 33, 35, 38, 40, 42, 45, 48, 50, 55, 60, 61, 65),
    *(70, 75, 80, 85, 90, 95, 100, 110, 120, 130, 140, 150, 160, 180, 200, 240, 280, 300, 420, 600),
)
# Clips as fractions of the recording.
FACTORS = {
    "beam_size": (None, 2, 5),
    "patience": (None, 0.5, 2.0),
    "length_penalty": (None, 0.4, 1.0),
    "word_timestamps": (False, True),
    "hallucination_silence_threshold": (None, 0.5, 2.0),
    "initial_prompt": (None, base.PROMPT),
    "carry_initial_prompt": (False, True),
    "clips": (None, (0.1,), (0.05, 0.4, 0.55, 0.9)),
    "without_timestamps": (False, True),
    "condition_on_previous_text": (True, False),
}


def possible(options):
    if options["beam_size"] is None and (options["patience"] or options["length_penalty"]):
        return False
    if options["carry_initial_prompt"] and not options["initial_prompt"]:
        return False
    return bool(options["word_timestamps"] or not options["hallucination_silence_threshold"])


def pairs(options):
    return set(itertools.combinations(options.items(), 2))


def plan():
    """Options for each recording: of 200 draws the one with the most pairs not yet met."""
    generator = recordings.SplitMix64(7)
    met, chosen = set(), []
    for _ in SECONDS:
        best, gained = None, -1
        for _ in range(200):
            options = {
                name: values[generator.draw() % len(values)] for name, values in FACTORS.items()
            }
            new = len(pairs(options) - met) if possible(options) else -1
            if new > gained:
                best, gained = options, new
        met |= pairs(best)
        chosen.append(best)
    every = [
        pair
        for (a, of_a), (b, of_b) in itertools.combinations(FACTORS.items(), 2)
        for pair in itertools.product([(a, x) for x in of_a], [(b, x) for x in of_b])
    ]
    return chosen, [pair for pair in every if tuple(pair) not in met]


def given(options, seconds):
    """The options that differ from transcribe()'s defaults."""
    defaults = {name: values[0] for name, values in FACTORS.items()}
    result = {name: value for name, value in options.items() if value != defaults[name]}
    if "clips" in result:
        times = [round(part * seconds, 2) for part in result.pop("clips")]
        result["clip_timestamps"] = ",".join(f"{t:g}" for t in times)
    return result


def transcribed(place):
    torch.set_num_threads(1)
    model, tokenizer = whisper_demo.load(whisper_demo.REPOSITORY / "models/whisper-demo")
    recorder = base.Recorder(model, tokenizer)
    seconds = SECONDS[place]
    seed = REPLACED.get(place, FIRST_SEED + place)
    entry, audio = base.described("speech", seed, seconds)
    entry["options"] = given(plan()[0][place], seconds)
    result = whisper.transcribe(model, audio, temperature=0.0, fp16=False, **entry["options"])
    entry["language"] = result["language"]
    entry["text"] = result["text"]
    entry["segments"] = []
    for segment in result["segments"]:
        row = base.segment_row(segment)
        if "word_timestamps" in entry["options"]:
            row.append(
                [
                    [word["word"], *(base.number(round(float(word[key]), 4)) for key in
                                     ("start", "end", "probability"))]
                    for word in segment["words"]
                ]
            )
        entry["segments"].append(row)
    entry["windows"] = [base.window_row(window)[:6] for window in recorder.windows]
    print(place, seconds, entry["options"], len(entry["windows"]), "windows", flush=True)
    return entry


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    started = time.time()
    missed = plan()[1]
    print(f"{len(missed)} pairs exclude each other: {missed}")
    order = sorted(range(len(SECONDS)), key=lambda place: -SECONDS[place])
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        done = dict(zip(order, pool.map(transcribed, order, chunksize=1)))
    entries = [done[place] for place in range(len(SECONDS))]
    text = '{"recordings":[\n' + ",\n".join(base.entry_text(entry) for entry in entries) + "]"
    OUTPUT.write_text(text + "}\n", encoding="utf-8")
    json.loads(OUTPUT.read_text(encoding="utf-8"))
    print(f"{OUTPUT.stat().st_size} bytes, {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
