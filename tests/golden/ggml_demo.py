# The demonstration model as whisper.cpp's files have it, written by hand: ggml-demo-TYPE.bin, with
# TYPE f32, f16, q4_0, q4_1, q5_0, q5_1 or q8_0. Layout: libs/whisper/model/ggml_file.h.
# Run from the repository's root, with gguf and safetensors installed:
#     python3 tests/golden/ggml_demo.py DIR TYPE...
import json
import struct
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file

DEMO = Path("models/whisper-demo")
FILE_TYPES = dict(f32=0, f16=1, q4_0=2002, q4_1=2003, q8_0=2007, q5_0=2008, q5_1=2009)
TENSOR_TYPES = dict(f32=0, f16=1, q4_0=2, q4_1=3, q5_0=6, q5_1=7, q8_0=8)
NAMES = [("model.", ""), ("encoder.layer_norm.", "encoder.ln_post."),
         ("decoder.layer_norm.", "decoder.ln."), ("embed_positions.weight", "positional_embedding"),
         ("embed_tokens", "token_embedding"), ("layers", "blocks"),
         ("self_attn_layer_norm", "attn_ln"), ("encoder_attn_layer_norm", "cross_attn_ln"),
         ("final_layer_norm", "mlp_ln"), ("self_attn", "attn"), ("encoder_attn", "cross_attn"),
         ("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "out"),
         ("fc1", "mlp.0"), ("fc2", "mlp.2")]


def i32(*values):
    return struct.pack(f"<{len(values)}i", *values)


# GPT-2's byte alphabet: printable bytes stand for themselves, the others for what follows 255.
def byte_of_character():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + i): byte for i, byte in enumerate(others)
    }


def tokens():
    alphabet = byte_of_character()
    vocabulary = json.loads((DEMO / "vocab.json").read_text())
    by_id = sorted((number, token) for token, number in vocabulary.items())
    ranks = [token for _, token in by_id if not token.startswith("<|")]
    return [bytes(alphabet[character] for character in token) for token in ranks]


def tensor(name, values, kind):
    for old, new in NAMES:
        name = name.replace(old, new)
    if name in ("encoder.conv1.bias", "encoder.conv2.bias"):
        values = values[:, None]
    plain = values.ndim == 1 or values.shape[1] == 1 or "positional" in name
    if plain:
        kind = "f32"
    elif values.ndim == 3 and kind != "f32":
        kind = "f16"
    data = gguf.quants.quantize(values.astype(np.float32), gguf.GGMLQuantizationType[kind.upper()])
    encoded = name.encode()
    return (i32(values.ndim, len(encoded), TENSOR_TYPES[kind], *reversed(values.shape)) + encoded +
            data.tobytes())


def model_file(kind):
    config = json.loads((DEMO / "config.json").read_text())
    channels, mels = config["d_model"], config["num_mel_bins"]
    parts = [b"lmgg", i32(config["vocab_size"], 1500, channels, config["encoder_attention_heads"],
                          config["encoder_layers"], config["max_target_positions"], channels,
                          config["decoder_attention_heads"], config["decoder_layers"], mels,
                          FILE_TYPES[kind]),
             i32(mels, 201), np.zeros((mels, 201), "<f4").tobytes()]
    ranks = tokens()
    parts.append(i32(len(ranks)))
    parts += [i32(len(token)) + token for token in ranks]
    for name, values in load_file(DEMO / "model.safetensors").items():
        if name != "proj_out.weight":
            parts.append(tensor(name, values, kind))
    return b"".join(parts)


for kind in sys.argv[2:]:
    Path(sys.argv[1], f"ggml-demo-{kind}.bin").write_bytes(model_file(kind))
