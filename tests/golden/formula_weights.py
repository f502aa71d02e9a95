"""Weights by formula, for models of the official sizes without the official files.

tests/support/formula_weights.h does the same in C++, bit for bit. Imported by official_shapes.py.
For the element `index` (row-major, from 0) of the tensor `name` (its name in a Hugging Face
checkpoint):

    hash  = FNV-1a, 64 bits, of the name's bytes
    z     = the first output of splitmix64 with the state hash + index (modulo 2^64)
    u     = (z >> 40) / 2^23 - 1                          in [-1, 1)
    value = float32(offset + scale * u)

with, by the end of the name:

    a layer norm's weight                offset 1, scale 1/8
    a bias                               offset 0, scale 1/8
    embed_positions.weight               offset 0, scale 1/16 (the encoder's too)
    another weight                       offset 0, scale round(4096 * sqrt(g / fan_in)) / 4096

where g is 6.75 for q_proj and k_proj and 3 for the rest, fan_in is the product of all sizes but the
first, and round is floor(x + 0.5). scale * u has at most 37 bits, so everything before the last
rounding is exact in doubles.
"""

import math

import numpy as np

MASK = (1 << 64) - 1


def name_hash(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def offset_and_scale(name, shape):
    if name.endswith("layer_norm.weight"):
        return 1.0, 0.125
    if name.endswith(".bias"):
        return 0.0, 0.125
    if name.endswith("embed_positions.weight"):
        return 0.0, 0.0625
    gain = 6.75 if name.endswith(("q_proj.weight", "k_proj.weight")) else 3.0
    fan_in = math.prod(shape[1:])
    return 0.0, math.floor(4096 * math.sqrt(gain / fan_in) + 0.5) / 4096


def mixed(z):
    """What splitmix64 makes of its states, an array of uint64; the caller lets them overflow."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def formula_tensor(name, shape):
    """The tensor as a float32 array."""
    offset, scale = offset_and_scale(name, shape)
    count = math.prod(shape)
    result = np.empty(count, dtype=np.float32)
    chunk = 1 << 22
    with np.errstate(over="ignore"):
        start = np.uint64((name_hash(name) + 0x9E3779B97F4A7C15) & MASK)
        for first in range(0, count, chunk):
            last = min(count, first + chunk)
            z = start + np.arange(first, last, dtype=np.uint64)
            z = mixed(z)
            u = (z >> np.uint64(40)).astype(np.float64) / 8388608 - 1
            result[first:last] = (offset + scale * u).astype(np.float32)
    return result.reshape(shape)


def whisper_layout(d, n_mels, n_vocab, encoder_layers, decoder_layers):
    """[(name, shape)] of a Whisper checkpoint as Hugging Face names it."""
    def pair(name, weight):
        return [(name + ".weight", weight), (name + ".bias", weight[:1])]

    def attention(name):
        yield f"{name}.k_proj.weight", (d, d)
        for part in ("v_proj", "q_proj", "out_proj"):
            yield from pair(f"{name}.{part}", (d, d))

    def layer(name, with_cross):
        yield from attention(f"{name}.self_attn")
        yield from pair(f"{name}.self_attn_layer_norm", (d,))
        if with_cross:
            yield from attention(f"{name}.encoder_attn")
            yield from pair(f"{name}.encoder_attn_layer_norm", (d,))
        yield from pair(f"{name}.fc1", (4 * d, d))
        yield from pair(f"{name}.fc2", (d, 4 * d))
        yield from pair(f"{name}.final_layer_norm", (d,))

    tensors = [
        *pair("model.encoder.conv1", (d, n_mels, 3)),
        *pair("model.encoder.conv2", (d, d, 3)),
        ("model.encoder.embed_positions.weight", (1500, d)),
    ]
    for i in range(encoder_layers):
        tensors += layer(f"model.encoder.layers.{i}", False)
    tensors += pair("model.encoder.layer_norm", (d,))
    tensors += [
        ("model.decoder.embed_tokens.weight", (n_vocab, d)),
        ("model.decoder.embed_positions.weight", (448, d)),
    ]
    for i in range(decoder_layers):
        tensors += layer(f"model.decoder.layers.{i}", True)
    return tensors + pair("model.decoder.layer_norm", (d,))
