"""Numbers inside openai-whisper on the demo model: whisper_numbers.json.

    pip install torch numpy safetensors tiktoken tokenizers openai-whisper==20250625
    python3 tests/golden/whisper_numbers.py [MODEL_FOLDER]      # default: models/whisper-demo

float32 on the CPU, recordings assembled by rule (recordings.py). The file:

recordings    kind, seed, seconds, checksum and, of each:
  content_frames
  log_mel     after normalisation, of the recording with 480000 zeros after it: {frame: the mels}
  encoder     of the first window as transcribe() cuts it (0.0 after its end): positions is a list
              of [frame, channel, value], norm the square root of the sum of squares
  decoder     tokens fed at once; for each position: top (ten of [id, logit], best first) and
              values, the logits of the ids in `listed`
  languages   probabilities of all languages, of the first 3000 frames of the padded log-mel
log_mel_128   as log_mel, with 128 mels, of the first recording
tokenizer     [text, ids of the demo model's tokenizer]
"""

import json
import pathlib
import sys

import tokenizers
import torch
import whisper

import check_strings
import recordings
import whisper_demo

OUTPUT = pathlib.Path(__file__).with_suffix(".json")
RECORDINGS = (("speech", 110, 12), ("speech", 117, 29.5), ("speech", 130, 75))
TEXT = " The old captain said nothing."


def number(value):
    return float(f"{float(value):.7g}")


def picked(count, limit, seed):
    """Different indices below a limit, in rising order, from the tests' generator."""
    generator = recordings.SplitMix64(seed)
    chosen = set()
    while len(chosen) < count:
        chosen.add(generator.draw() % limit)
    return sorted(chosen)


def mel_frames(mel, content_frames):
    middle = content_frames // 2
    frames = [0, 1, 2, middle // 2, middle, middle + 1, middle + middle // 2]
    frames += range(content_frames - 3, content_frames + 2)
    return {str(frame): [number(x) for x in mel[:, frame]] for frame in frames}


def encoder_numbers(features, seed):
    frames, channels = features.shape
    positions = [
        [i // channels, i % channels] for i in picked(200, frames * channels, seed)
    ]
    return {
        "positions": [[f, c, number(features[f, c])] for f, c in positions],
        "norm": number(features.double().square().sum().sqrt()),
    }


def decoder_numbers(logits, tokens, seed):
    listed = picked(100, logits.shape[-1], seed)
    return {
        "tokens": tokens,
        "listed": listed,
        "positions": [
            {
                "top": [[int(i), number(v)] for v, i in zip(*row.topk(10))],
                "values": [number(row[i]) for i in listed],
            }
            for row in logits
        ],
    }


@torch.no_grad()
def recording_numbers(model, tokenizer, kind, seed, seconds):
    samples = recordings.recording(kind, seed, seconds)
    audio = recordings.as_float(samples)
    mel = whisper.log_mel_spectrogram(audio, model.dims.n_mels, padding=480000)
    content_frames = mel.shape[-1] - 3000
    window = whisper.pad_or_trim(mel[:, : min(3000, content_frames)], 3000)
    features = model.encoder(window[None])
    tokens = [
        *tokenizer.sot_sequence,
        tokenizer.timestamp_begin,
        *tokenizer.encode(TEXT),
    ]
    logits = model.logits(torch.tensor([tokens]), features)[0]
    _, languages = model.detect_language(whisper.pad_or_trim(mel, 3000))
    return {
        "kind": kind,
        "seed": seed,
        "seconds": seconds,
        "checksum": recordings.checksum(samples),
        "content_frames": content_frames,
        "log_mel": mel_frames(mel, content_frames),
        "encoder": encoder_numbers(features[0], seed),
        "decoder": decoder_numbers(logits, tokens, seed),
        "languages": {code: number(p) for code, p in languages.items()},
    }


def main():
    torch.set_num_threads(2)
    folder = whisper_demo.REPOSITORY / "models/whisper-demo"
    if len(sys.argv) > 1:
        folder = pathlib.Path(sys.argv[1])
    model, tokenizer = whisper_demo.load(folder)
    published = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    vectors = []
    for text in check_strings.STRINGS:
        ids = published.encode(text, add_special_tokens=False).ids
        if ids != tokenizer.encode(text):
            print("the two tokenizers differ:", repr(text), ids, tokenizer.encode(text))
        vectors.append([text, ids])
    first = recordings.as_float(recordings.recording(*RECORDINGS[0]))
    mel_128 = whisper.log_mel_spectrogram(first, 128, padding=480000)
    result = {
        "recordings": [recording_numbers(model, tokenizer, *r) for r in RECORDINGS],
        "log_mel_128": mel_frames(mel_128, mel_128.shape[-1] - 3000),
        "tokenizer": vectors,
    }
    write(OUTPUT, result)


def write(path, result):
    """JSON with one line for each entry of each list or table at the top."""
    parts = []
    for name, value in result.items():
        if isinstance(value, dict):
            rows = (f"{compact(key)}:{compact(value[key])}" for key in value)
            parts.append(f"{compact(name)}:{{\n" + ",\n".join(rows) + "}")
        elif isinstance(value, list):
            parts.append(f"{compact(name)}:[\n" + ",\n".join(map(compact, value)) + "]")
        else:
            parts.append(f"{compact(name)}:{compact(value)}")
    path.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(json.dumps(result))
    print(path.name, path.stat().st_size, "bytes")


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
