"""What openai-whisper's own transcribe() makes of the demo model: whisper_transcribe.json.

    pip install torch numpy safetensors tiktoken openai-whisper==20250625
    python3 tests/golden/whisper_transcribe.py [MODEL_FOLDER]      # default: models/whisper-demo

float32 on the CPU. A few minutes. The recordings are assembled by rule (recordings.py). The file:

suppressed_tokens  ids that suppress_tokens="-1" masks (the non-speech set and the special tokens)
recordings     greedy at temperature 0 alone: kind, seed, seconds, samples, checksum of the samples;
               options given to transcribe(); detected language, with the probabilities of the best
               two if none was given; text; segments; windows
segments       [seek, start, end, text, tokens, temperature, avg_logprob, compression_ratio,
               no_speech_prob]
windows        one for each call of decode(): [seek, number of prompt tokens, sampled tokens without
               the end of text, avg_logprob, compression_ratio, no_speech_prob, margin,
               rule_margin]. margin is the smallest difference, over all steps, between the best
               and the second best filtered logit; rule_margin the smallest distance between the
               timestamps' logsumexp and the best text token in the rule that compares them (null
               where no step had both)
fallbacks      recordings with the default temperatures: windows up to and including the first one
               which temperature 0 did not decide, with the reason in `rejected`
quiet          silence and quiet noise with the default temperatures: everything that came out
"""

import json
import math
import pathlib
import sys
import time

import torch
import whisper
import whisper.decoding

import recordings
import whisper_demo

OUTPUT = pathlib.Path(__file__).with_suffix(".json")
PROMPT = "The story of the old captain and his house by the sea."

# (seed, seconds, options)
RECORDINGS = (
    (101, 1, {}),
    (102, 1.5, {"language": "en"}),
    (535, 8.5, {}),
    (104, 3, {"without_timestamps": True}),
    (527, 4.5, {}),
    (106, 5, {"initial_prompt": PROMPT}),
    (107, 6.5, {"language": "de"}),
    (108, 8, {"clip_timestamps": "2,6.5"}),
    (109, 10, {"task": "translate"}),
    (110, 12, {}),
    (111, 14, {"initial_prompt": "  Here is the news. ", "language": "en"}),
    (112, 17, {}),
    (113, 20, {"language": "fr"}),
    (114, 23, {"clip_timestamps": "1.25"}),
    (115, 26, {}),
    (116, 28, {"condition_on_previous_text": False}),
    (117, 29.5, {}),
    (118, 30, {}),
    (119, 31, {}),
    (120, 34, {"initial_prompt": PROMPT, "condition_on_previous_text": False}),
    (161, 36, {"without_timestamps": True}),
    (122, 40, {"language": "en"}),
    (123, 45, {"clip_timestamps": "3,14,20.02,38.5"}),
    (124, 50, {"without_timestamps": True}),
    (125, 55, {}),
    (146, 59, {"condition_on_previous_text": False}),
    (127, 60.5, {}),
    (128, 64, {"task": "translate", "language": "en"}),
    (129, 70, {"initial_prompt": PROMPT, "carry_initial_prompt": True}),
    (130, 75, {}),
    (131, 80, {"clip_timestamps": "0,33.3,40"}),
    (132, 88, {}),
    (153, 95, {"initial_prompt": "Kitchen, harbour, mountain."}),
    (134, 110, {"condition_on_previous_text": False}),
    (135, 120, {}),
    (136, 135, {"clip_timestamps": "10,70,70,100,110,130"}),
    (137, 150, {"condition_on_previous_text": False}),
    (138, 180, {}),
    (159, 300, {"condition_on_previous_text": False}),
    (140, 300, {"language": "en"}),
)
FALLBACKS = (
    ("loud_noise", 201, 20),
    ("tones", 214, 25),
    ("chords", 215, 25),
    ("drowned", 206, 25),
    ("babble", 210, 25),
)
QUIET = (("silence", 0, 40), ("quiet_noise", 301, 40))


class Rejected(Exception):
    """Ends transcribe() at the first window which temperature 0 does not decide."""


class Functional:
    """torch.nn.functional for whisper.decoding, which keeps what went into log_softmax."""

    def __init__(self, functional):
        self.functional = functional
        self.inputs = []

    def __getattr__(self, name):
        return getattr(self.functional, name)

    def log_softmax(self, logits, dim):
        self.inputs.append(logits[0].clone())
        return self.functional.log_softmax(logits, dim=dim)


class Recorder:
    """Is called between transcribe() and decode() and notes every window."""

    def __init__(self, model, tokenizer):
        self.tokenizer = tokenizer
        self.windows = []
        self.stop_when_rejected = False
        self.functional = Functional(whisper.decoding.F)
        whisper.decoding.F = self.functional
        self.decode_window = model.decode
        model.decode = self.decode

    def decode(self, mel, options):
        frame = sys._getframe()
        while frame.f_code.co_name != "transcribe":
            frame = frame.f_back
        self.functional.inputs.clear()
        result = self.decode_window(mel, options)
        window = {
            "seek": frame.f_locals["seek"],
            "prompt": len((options.prompt or [])[-223:]),
            "result": result,
            "margins": self.margins(not options.without_timestamps),
        }
        self.windows.append(window)
        reasons = []
        if result.compression_ratio > 2.4:
            reasons.append("compression_ratio")
        if result.avg_logprob < -1.0:
            reasons.append("avg_logprob")
            if result.no_speech_prob > 0.6:
                reasons = []
        window["rejected"] = reasons
        if reasons and self.stop_when_rejected:
            raise Rejected
        return result

    def margins(self, with_rule):
        inputs = self.functional.inputs
        margin = rule_margin = math.inf
        begin = self.tokenizer.timestamp_begin
        if with_rule:
            for logits in inputs[0::2]:
                difference = logits[begin:].logsumexp(0) - logits[:begin].max()
                if torch.isfinite(difference):
                    rule_margin = min(rule_margin, abs(difference.item()))
            inputs = inputs[1::2]
        for logits in inputs:
            first, second = logits.topk(2).values.tolist()
            margin = min(margin, first - second)
        return [number(margin), number(rule_margin)]


def number(value):
    """Seven significant digits, null for infinity."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.7g}")


def window_row(window):
    result = window["result"]
    return [
        window["seek"],
        window["prompt"],
        result.tokens,
        number(result.avg_logprob),
        number(result.compression_ratio),
        number(result.no_speech_prob),
        *window["margins"],
    ]


def segment_row(segment):
    return [
        segment["seek"],
        number(segment["start"]),
        number(segment["end"]),
        segment["text"],
        segment["tokens"],
        segment["temperature"],
        number(segment["avg_logprob"]),
        number(segment["compression_ratio"]),
        number(segment["no_speech_prob"]),
    ]


def described(kind, seed, seconds):
    samples = recordings.recording(kind, seed, seconds)
    entry = {
        "kind": kind,
        "seed": seed,
        "seconds": seconds,
        "samples": len(samples),
        "checksum": recordings.checksum(samples),
    }
    return entry, recordings.as_float(samples)


def language_probabilities(model, audio):
    """The best two of what transcribe() sees when it detects the language."""
    mel = whisper.log_mel_spectrogram(audio, model.dims.n_mels, padding=whisper.audio.N_SAMPLES)
    _, probabilities = model.detect_language(whisper.pad_or_trim(mel, whisper.audio.N_FRAMES))
    best = sorted(probabilities, key=probabilities.get, reverse=True)[:2]
    return {language: number(probabilities[language]) for language in best}


def transcribed(model, recorder, seed, seconds, options):
    entry, audio = described("speech", seed, seconds)
    entry["options"] = options
    recorder.windows.clear()
    result = whisper.transcribe(model, audio, temperature=0.0, fp16=False, **options)
    entry["language"] = result["language"]
    if "language" not in options:
        entry["language_probabilities"] = language_probabilities(model, audio)
    entry["text"] = result["text"]
    entry["segments"] = [segment_row(segment) for segment in result["segments"]]
    entry["windows"] = [window_row(window) for window in recorder.windows]
    return entry


def with_fallback(model, recorder, kind, seed, seconds, stop):
    entry, audio = described(kind, seed, seconds)
    recorder.windows.clear()
    recorder.stop_when_rejected = stop
    torch.manual_seed(0)
    entry["language_probabilities"] = language_probabilities(model, audio)
    try:
        result = whisper.transcribe(model, audio, fp16=False)
        entry["text"] = result["text"]
        entry["segments"] = [segment_row(segment) for segment in result["segments"]]
    except Rejected:
        entry["rejected"] = recorder.windows[-1]["rejected"]
    recorder.stop_when_rejected = False
    entry["temperatures"] = [window["result"].temperature for window in recorder.windows]
    entry["windows"] = [window_row(window) for window in recorder.windows]
    return entry


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def entry_text(entry):
    """An entry with one line for its head and one for each segment and window."""
    head = {key: entry[key] for key in entry if key not in ("segments", "windows")}
    text = compact(head)[:-1]
    for key in ("segments", "windows"):
        if key in entry:
            rows = ",\n".join(compact(row) for row in entry[key])
            text += f',\n"{key}":[\n{rows}]' if rows else f',\n"{key}":[]'
    return text + "}"


def report(entry):
    """Prints a line for a recording, and its near-ties."""
    print(entry["kind"], entry["seed"], entry["seconds"], entry.get("language"),
          len(entry["windows"]), "windows", entry.get("rejected", ""), flush=True)
    for window in entry["windows"]:
        for name, margin in zip(("margin", "rule_margin"), window[6:]):
            if margin is not None and margin < 5e-3:
                print(f"    near-tie: seek {window[0]} {name} {margin}")


def main():
    torch.set_num_threads(2)
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    model, tokenizer = whisper_demo.load(folder or whisper_demo.REPOSITORY / "models/whisper-demo")
    recorder = Recorder(model, tokenizer)
    task = whisper.decoding.DecodingTask(model, whisper.DecodingOptions(fp16=False))
    started = time.time()
    groups = {"recordings": [], "fallbacks": [], "quiet": []}
    for seed, seconds, options in RECORDINGS:
        groups["recordings"].append(transcribed(model, recorder, seed, seconds, dict(options)))
        report(groups["recordings"][-1])
    for kind, seed, seconds in FALLBACKS:
        groups["fallbacks"].append(with_fallback(model, recorder, kind, seed, seconds, True))
        report(groups["fallbacks"][-1])
    for kind, seed, seconds in QUIET:
        groups["quiet"].append(with_fallback(model, recorder, kind, seed, seconds, False))
        report(groups["quiet"][-1])
    head = {"suppressed_tokens": list(task._get_suppress_tokens())}
    text = compact(head)[:-1]
    for name, entries in groups.items():
        text += f',\n"{name}":[\n' + ",\n".join(entry_text(entry) for entry in entries) + "]"
    OUTPUT.write_text(text + "}\n", encoding="utf-8")
    json.loads(OUTPUT.read_text(encoding="utf-8"))
    print(f"{OUTPUT.stat().st_size} bytes, {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
