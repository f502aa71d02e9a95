"""Mean squared errors of quantised numbers over their mean square, as llama.cpp's quantisers make
the blocks: the figures of docs/formats.md and of tests/kernels/blocks_test.cc.

    python3 tests/golden/block_errors.py LIBGGML_BASE.so [FLOATS...]    # of a llama.cpp build

FLOATS: files of float32; without them normal numbers. Needs gguf and numpy."""
import ctypes
import sys

import gguf
import numpy as np

TYPES = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]
VALUES = 256  # of a row; any type has whole blocks of it


def error(library, name, rows):
    kind = gguf.GGMLQuantizationType[name]
    values, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = np.zeros((len(rows), VALUES // values * size), np.uint8)
    library.ggml_quantize_chunk(int(kind), rows.ctypes.data, blocks.ctypes.data, 0, len(rows), VALUES,
                                None)
    found = gguf.quants.dequantize(blocks, kind)
    return ((rows - found).astype(np.float64)**2).sum() / (rows.astype(np.float64)**2).sum()


def main():
    library = ctypes.CDLL(sys.argv[1])
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, number, number, number,
                                            pointer]
    samples = {name: np.fromfile(name, np.float32) for name in sys.argv[2:]} or {
        "normal": np.random.default_rng(0).normal(0, 0.02, 1 << 19).astype(np.float32)}
    for sample, numbers in samples.items():
        rows = numbers[:len(numbers) // VALUES * VALUES].reshape(-1, VALUES)
        for name in TYPES:
            print(f"{sample} {name.lower()} {error(library, name, rows):.4g}")


main()
