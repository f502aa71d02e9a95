"""openai-whisper at the official models' sizes, without their weights: official_shapes.json.

    pip install torch numpy safetensors tiktoken openai-whisper==20250625
    python3 tests/golden/official_shapes.py      # 4 GiB of memory, a minute

Two models, laid out as tiny.en and large-v3 but with 2 + 2 layers, with weights by formula
(formula_weights.py), in float32 on the CPU; and openai-whisper's own tokenizers. The file:

recording    kind, seed, seconds, checksum: its first window is the input
models       for each: name, d_model, heads, n_mels, n_vocab, encoder_layers, decoder_layers, and
  weights    [tensor, shape, first value, last value]
  encoder    positions [frame, channel, value] and norm, as in whisper_numbers.json
  tokens     fed at once
  listed     200 ids
  positions  for each token: top (five of [id, logit], best first), values (logits of `listed`)
tokenizers   for gpt2 (.en), multilingual with 99 and with 100 languages: the ids of the special
             tokens that are not timestamps, timestamp_begin, timestamp_end, eot, sot_sequence,
             non_speech (what suppress_tokens="-1" adds), suppressed (that, and the special tokens)
encoded      [text, ids by gpt2, ids by multilingual]
"""

import pathlib

import torch
import whisper
from whisper.decoding import DecodingOptions, DecodingTask
from whisper.model import ModelDimensions, Whisper
from whisper.tokenizer import get_tokenizer

import check_strings
import formula_weights
import recordings
import whisper_demo
from whisper_numbers import encoder_numbers, number, picked, write

OUTPUT = pathlib.Path(__file__).with_suffix(".json")
RECORDING = ("speech", 115, 26)
TEXT = " The old captain said nothing."
LAYERS = 2
MODELS = (
    {"name": "tiny.en", "d_model": 384, "heads": 6, "n_mels": 80, "n_vocab": 51864},
    {"name": "large-v3", "d_model": 1280, "heads": 20, "n_mels": 128, "n_vocab": 51866},
)


def dimensions(model, layers=LAYERS):
    return ModelDimensions(
        n_mels=model["n_mels"],
        n_audio_ctx=1500,
        n_audio_state=model["d_model"],
        n_audio_head=model["heads"],
        n_audio_layer=layers,
        n_vocab=model["n_vocab"],
        n_text_ctx=448,
        n_text_state=model["d_model"],
        n_text_head=model["heads"],
        n_text_layer=layers,
    )


@torch.no_grad()
def filled(model):
    """A Whisper with the formula's weights, and the rows of `weights`."""
    network = Whisper(dimensions(model)).eval()
    parameters = network.state_dict()
    rows = []
    layout = formula_weights.whisper_layout(
        model["d_model"], model["n_mels"], model["n_vocab"], LAYERS, LAYERS
    )
    left = {name for name in parameters if "alignment_heads" not in name}
    for name, shape in layout:
        tensor = torch.from_numpy(formula_weights.formula_tensor(name, shape))
        here = whisper_demo.openai_name(name)
        assert parameters[here].shape == tensor.shape, (here, parameters[here].shape, shape)
        parameters[here].copy_(tensor)
        left.remove(here)
        flat = tensor.flatten()
        rows.append([name, list(shape), flat[0].item(), flat[-1].item()])
    assert not left, left
    return network, rows


@torch.no_grad()
def model_numbers(model, audio):
    network, weights = filled(model)
    tokenizer = get_tokenizer(
        network.is_multilingual,
        num_languages=network.num_languages,
        language="en",
        task="transcribe",
    )
    tokens = [
        *tokenizer.sot_sequence,
        tokenizer.timestamp_begin,
        *tokenizer.encode(TEXT),
    ]
    mel = whisper.log_mel_spectrogram(audio, model["n_mels"], padding=480000)
    content_frames = mel.shape[-1] - 3000
    window = whisper.pad_or_trim(mel[:, : min(3000, content_frames)], 3000)
    features = network.encoder(window[None])
    logits = network.logits(torch.tensor([tokens]), features)[0]
    listed = picked(200, model["n_vocab"], model["d_model"])
    return {
        **model,
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
        "weights": weights,
        "encoder": encoder_numbers(features[0], model["d_model"]),
        "tokens": tokens,
        "listed": listed,
        "positions": [
            {
                "top": [[int(i), number(v)] for v, i in zip(*row.topk(5))],
                "values": [number(row[i]) for i in listed],
            }
            for row in logits
        ],
    }


def tokenizer_numbers(n_vocab):
    """What openai-whisper derives from a vocabulary; n_vocab tells it which one."""
    small = {"d_model": 64, "heads": 1, "n_mels": 80, "n_vocab": n_vocab}
    network = Whisper(dimensions(small, layers=1))
    task = DecodingTask(network, DecodingOptions(language="en", fp16=False))
    tokenizer = task.tokenizer
    specials = sorted(tokenizer.special_tokens.items(), key=lambda item: item[1])
    return {
        "n_vocab": n_vocab,
        "special_tokens": {t: i for t, i in specials if i < tokenizer.timestamp_begin},
        "timestamp_begin": tokenizer.timestamp_begin,
        "timestamp_end": specials[-1][1],
        "eot": tokenizer.eot,
        "sot_sequence": list(tokenizer.sot_sequence),
        "non_speech": list(tokenizer.non_speech_tokens),
        "suppressed": list(task._get_suppress_tokens()),
    }


def main():
    torch.set_num_threads(2)
    kind, seed, seconds = RECORDING
    samples = recordings.recording(*RECORDING)
    audio = recordings.as_float(samples)
    gpt2, multilingual = get_tokenizer(False), get_tokenizer(True)
    write(
        OUTPUT,
        {
            "recording": {
                "kind": kind,
                "seed": seed,
                "seconds": seconds,
                "checksum": recordings.checksum(samples),
            },
            "models": [model_numbers(model, audio) for model in MODELS],
            "tokenizers": {
                "gpt2": tokenizer_numbers(51864),
                "multilingual_99": tokenizer_numbers(51865),
                "multilingual_100": tokenizer_numbers(51866),
            },
            "encoded": [
                [text, gpt2.encode(text), multilingual.encode(text)]
                for text in check_strings.STRINGS
            ],
        },
    )


if __name__ == "__main__":
    main()
