"""What openai-whisper's transcribe() makes of words on the demo model: whisper_words.json.

    pip install torch numpy scipy numba safetensors tiktoken openai-whisper==20250625
    python3 tests/golden/whisper_words.py [MODEL_FOLDER]      # default: models/whisper-demo

float32 on the CPU, temperature 0. A few minutes. The recordings are assembled by rule
(recordings.py); heads, alignment and all that follows are the reference's own. The file:

median_filter  [shape, [[width, sum], ...]]: scipy's medfilt of the reflect-padded values that
               draws() gives, told by the sum over i of (2 i + 1) * value[i] * 2^24, 64 bits
recordings     as in whisper_transcribe.json, the options with word_timestamps left out. A segment
               has one thing more: its words, [word, start, end, probability]
"""

import json
import pathlib
import sys
import time

import numpy as np
import scipy.signal
import torch
import whisper

import recordings
import whisper_demo
import whisper_transcribe as base

OUTPUT = pathlib.Path(__file__).with_suffix(".json")
SHAPES = ((10,), (1, 15), (4, 5, 345), (6, 12, 240, 512))  # of openai/whisper tests/test_timing.py
WIDTHS = (3, 5, 7, 13)

# (kind, seed, seconds, options)
RECORDINGS = (
    ("speech", 601, 1, {}),
    ("speech", 602, 2.5, {"language": "en"}),
    ("speech", 603, 6, {"initial_prompt": base.PROMPT}),
    ("speech", 604, 10, {"clip_timestamps": "1.5,8.25"}),
    ("speech", 605, 14, {"language": "de"}),
    ("speech", 606, 20, {"without_timestamps": True}),
    ("speech", 607, 30, {"hallucination_silence_threshold": 2.0}),
    ("speech", 608, 37, {}),
    ("speech", 609, 45, {"condition_on_previous_text": False}),
    ("speech", 610, 52, {"hallucination_silence_threshold": 0.5}),
    ("speech", 611, 60, {"task": "translate", "language": "en"}),
    ("speech", 612, 75, {"initial_prompt": base.PROMPT, "carry_initial_prompt": True}),
    ("speech", 613, 90, {"clip_timestamps": "3,40,52.5", "hallucination_silence_threshold": 1.0}),
    ("speech", 614, 105, {}),
    (
        "speech",
        615,
        120,
        {"condition_on_previous_text": False, "hallucination_silence_threshold": 0.3},
    ),
    ("speech", 626, 120, {"prepend_punctuations": "", "append_punctuations": "."}),
    ("drowned", 637, 30, {"hallucination_silence_threshold": 0.2}),
    ("babble", 628, 33, {"hallucination_silence_threshold": 0.1}),
    ("chords", 629, 35, {"hallucination_silence_threshold": 0.5}),
    ("loud_noise", 620, 20, {}),
)


def draws(count):
    """Whole numbers below 2^24: the top bits of splitmix64 started at 1."""
    return recordings.SplitMix64(1).draws(count) >> np.uint64(40)


def filtered(shape, width):
    count = int(np.prod(shape))
    x = (draws(count).astype(np.float64) / 2**24).reshape(shape)
    pad = width // 2
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(pad, pad)], mode="reflect")
    y = scipy.signal.medfilt(padded, [1] * (x.ndim - 1) + [width])[..., pad:-pad]
    whole = (y.ravel() * 2**24).astype(np.uint64)
    weights = np.arange(count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return str(int((whole * weights).sum(dtype=np.uint64)))


def transcribed(model, recorder, kind, seed, seconds, options):
    entry, audio = base.described(kind, seed, seconds)
    entry["options"] = options
    recorder.windows.clear()
    result = whisper.transcribe(
        model, audio, temperature=0.0, fp16=False, word_timestamps=True, **options
    )
    entry["language"] = result["language"]
    entry["text"] = result["text"]
    entry["segments"] = [
        base.segment_row(segment)
        + [
            [
                [word["word"], *(base.number(float(word[key])) for key in
                                 ("start", "end", "probability"))]
                for word in segment["words"]
            ]
        ]
        for segment in result["segments"]
    ]
    entry["windows"] = [base.window_row(window) for window in recorder.windows]
    return entry


def main():
    torch.set_num_threads(2)
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    model, tokenizer = whisper_demo.load(folder or whisper_demo.REPOSITORY / "models/whisper-demo")
    recorder = base.Recorder(model, tokenizer)
    started = time.time()
    medians = [[shape, [[width, filtered(shape, width)] for width in WIDTHS]] for shape in SHAPES]
    entries = []
    for kind, seed, seconds, options in RECORDINGS:
        entries.append(transcribed(model, recorder, kind, seed, seconds, dict(options)))
        base.report(entries[-1])
    text = base.compact({"median_filter": medians})[:-1]
    text += ',\n"recordings":[\n' + ",\n".join(base.entry_text(entry) for entry in entries) + "]"
    OUTPUT.write_text(text + "}\n", encoding="utf-8")
    json.loads(OUTPUT.read_text(encoding="utf-8"))
    print(f"{OUTPUT.stat().st_size} bytes, {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
