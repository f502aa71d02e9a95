"""What openai-whisper's transcribe() writes for the recordings of held_out.sh, at temperature 0.

    pip install torch numpy safetensors tiktoken openai-whisper==20250625
    python3 tests/accuracy/reference.py DIR [--beams N] [--no-previous-text] [--model FOLDER]

Reads DIR/*.wav, writes DIR/reference_beam_N.jsonl (or DIR/reference_beam_N_no_previous.jsonl), a
line of {"source", "text"} per segment, and the seconds that it took next to it, both for table.sh. One
beam decodes greedily. The model is models/whisper-demo unless named. float32 on one thread of the
CPU; English is given, all other options are transcribe()'s defaults.
"""

import argparse
import json
import pathlib
import sys
import time
import wave

import numpy as np
import torch
import whisper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import whisper_demo  # noqa: E402


def samples(path):
    """16 kHz, mono, 16 bits, as held_out.sh writes them."""
    with wave.open(str(path)) as file:
        assert file.getparams()[:3] == (1, 2, 16000), path
        data = file.readframes(file.getnframes())
    return np.frombuffer(data, "<i2").astype(np.float32) / 32768


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--beams", type=int, default=1)
    parser.add_argument("--no-previous-text", action="store_true")
    parser.add_argument(
        "--model", type=pathlib.Path, default=whisper_demo.REPOSITORY / "models/whisper-demo"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    model, _ = whisper_demo.load(given.model)
    options = {"language": "en", "temperature": 0.0, "fp16": False}
    options["condition_on_previous_text"] = not given.no_previous_text
    if given.beams > 1:
        options["beam_size"] = given.beams
    paths = sorted(given.folder.glob("*.wav"))
    assert paths, f"no recordings in {given.folder}"
    started = time.time()
    lines = []
    for path in paths:
        result = whisper.transcribe(model, samples(path), **options)
        for segment in result["segments"]:
            lines.append(json.dumps({"source": path.name, "text": segment["text"]}) + "\n")
    name = f"reference_beam_{given.beams}" + "_no_previous" * given.no_previous_text
    (given.folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (given.folder / f"{name}.seconds").write_text(f"{time.time() - started:.0f}\n")


if __name__ == "__main__":
    main()
