# What gguf-py makes of quantised blocks, and which blocks it makes of floats. The expected numbers
# of tests/kernels/blocks_test.cc.
# Run from the repository's root, with gguf installed:
#     python3 tests/golden/blocks.py > tests/golden/blocks.json
import json

import gguf
import numpy as np

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
         "IQ4_NL", "IQ4_XS", "MXFP4"]
MADE = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4"]  # as gguf-py makes them
HALVES = {  # where a block's f16 are
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
    "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []
}
generator = np.random.default_rng(5)


def random_blocks(name, count):
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (count, size), dtype=np.uint8)
    for place in HALVES[name]:  # any bits but infinity's
        halves = generator.normal(0, 1, (count, 1)).astype(np.float16)
        halves[0] = np.float16(6e-7)  # a subnormal number
        blocks[:, place:place + 2] = halves.view(np.uint8)
    return blocks


def dequantized(name):
    kind = gguf.GGMLQuantizationType[name]
    blocks = random_blocks(name, 2 if gguf.GGML_QUANT_SIZES[kind][0] == 256 else 6)
    values = gguf.quants.dequantize(blocks, kind)
    return dict(dtype=name.lower(), blocks=blocks.tobytes().hex(),
                values=values.astype("<f4").tobytes().hex())


def quantized(name, values):
    blocks = gguf.quants.quantize(values, gguf.GGMLQuantizationType[name])
    return dict(dtype=name.lower(), blocks=blocks.tobytes().hex())


def main():
    values = generator.normal(0, 0.1, (8, 32)).astype(np.float32)
    values[1] *= 1000
    values[2] = 0
    values[3] = 0.25  # no range
    values[4] = np.abs(values[4])
    values[5, 7], values[5, 9] = 3, -3  # of two largest ones the first counts
    values[6] = np.arange(-16, 16) / 8  # halves, to be rounded
    print(json.dumps(dict(dequantize=[dequantized(name) for name in TYPES],
                          values=values.astype("<f4").tobytes().hex(),
                          quantize=[quantized(name, values) for name in MADE]), indent=1))


main()
