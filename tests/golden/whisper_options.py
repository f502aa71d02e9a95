"""openai-whisper's transcribe() on the demo model with rarer options: whisper_options.json.

    pip install torch numpy numba safetensors tiktoken openai-whisper==20250625
    python3 tests/golden/whisper_options.py

float32 on the CPU, temperature 0. A few minutes. The file:

recordings     as in whisper_transcribe.json. A segment has its words, [word, start, end,
               probability], if word_timestamps is among the options
"""

import json
import pathlib

import torch
import whisper

import whisper_demo
import whisper_transcribe as base

OUTPUT = pathlib.Path(__file__).with_suffix(".json")
NEWS = "Here is the news of the day from the harbour, the mountain and the old house by the sea."

# (kind, seed, seconds, options)
RECORDINGS = (
    ("speech", 601, 12, {"suppress_tokens": ""}),
    ("babble", 602, 25, {"suppress_tokens": ""}),
    ("drowned", 603, 40, {"suppress_tokens": ""}),
    ("chords", 604, 30, {"suppress_tokens": "", "without_timestamps": True}),
    ("speech", 605, 20, {"suppress_tokens": "11,13"}),
    ("speech", 606, 40, {"clip_timestamps": "2,10,10,22,22,35"}),
    ("speech", 607, 60, {"clip_timestamps": "30,42,5,20"}),
    ("speech", 628, 50, {"clip_timestamps": "0,24,12,40,12"}),
    ("speech", 629, 40, {"clip_timestamps": "20,10,4,4,3,15"}),
    ("speech", 610, 70, {"clip_timestamps": "40,60,10,45", "word_timestamps": True}),
    ("speech", 611, 20, {"sample_len": 6}),
    ("speech", 612, 35, {"sample_len": 1}),
    ("speech", 613, 10, {"sample_len": 20, "beam_size": 3}),
    ("speech", 614, 20, {"sample_len": 300}),
    ("speech", 615, 15, {"sample_len": 220, "prefix": NEWS}),
    ("speech", 616, 15, {"sample_len": 230, "prefix": NEWS}),
    ("speech", 617, 15, {"prefix": NEWS}),
    ("speech", 703, 6, {"max_initial_timestamp": 0.0}),
    ("speech", 620, 20, {"max_initial_timestamp": None}),
    ("speech", 703, 6, {"max_initial_timestamp": 0.1}),
    ("speech", 703, 6, {"max_initial_timestamp": 5.0}),
    ("speech", 705, 6, {"logprob_threshold": None, "no_speech_threshold": 1e-6}),
    ("quiet_noise", 701, 8, {"suppress_tokens": "", "without_timestamps": True}),
    ("drowned", 624, 20, {"no_speech_threshold": 1e-6}),
    ("tones", 625, 20, {"no_speech_threshold": None}),
    (
        "speech",
        626,
        25,
        {"word_timestamps": True, "prepend_punctuations": "", "append_punctuations": ""},
    ),
)


def words_of(segment):
    return [
        [word["word"], base.number(word["start"]), base.number(word["end"]),
         base.number(word["probability"])]
        for word in segment["words"]
    ]


def transcribed(model, recorder, kind, seed, seconds, options):
    entry, audio = base.described(kind, seed, seconds)
    entry["options"] = options
    recorder.windows.clear()
    result = whisper.transcribe(
        model, audio, temperature=0.0, fp16=False, language="en", **options
    )
    entry["options"] = {"language": "en", **options}
    entry["language"] = result["language"]
    entry["text"] = result["text"]
    entry["segments"] = [base.segment_row(segment) for segment in result["segments"]]
    if options.get("word_timestamps"):
        for row, segment in zip(entry["segments"], result["segments"]):
            row.append(words_of(segment))
    entry["windows"] = [base.window_row(window) for window in recorder.windows]
    return entry


def main():
    torch.set_num_threads(1)
    model, tokenizer = whisper_demo.load(whisper_demo.REPOSITORY / "models/whisper-demo")
    recorder = base.Recorder(model, tokenizer)
    entries = []
    for kind, seed, seconds, options in RECORDINGS:
        entries.append(transcribed(model, recorder, kind, seed, seconds, dict(options)))
        base.report(entries[-1])
    text = '{"recordings":[\n' + ",\n".join(base.entry_text(entry) for entry in entries) + "]}\n"
    json.loads(text)
    OUTPUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
