// Products of many rows by AMX's bf16 instructions, of numbers with more than bf16's 8 bits: each
// is a sum of bf16 parts, and a product the sum of the larger products of parts, in f32 (Henry,
// Tang, Heinecke: https://arxiv.org/abs/1904.06376).
//
//     weights           parts of w, of x    products    left out and rounded off, of |w x|
//     f32               3, 3                6           below 2^-24
//     f16               2, 3                5           below 2^-24
//     bf16              1, 3                3           below 2^-24
//     quantised blocks  2, 2                3           2^-16 at most
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"

namespace hark {

struct StoredRows;

inline constexpr int64_t kSplitRows = 16;      // of x, arranged together
inline constexpr int64_t kSplitOutputs = 128;  // rows of weights at a time, at most

struct SplitKernels {
    // Bytes of kSplitRows rows of x, and of scratch.
    int64_t (*arranged_bytes)(int64_t size, Dtype weights);
    int64_t (*scratch_bytes)(Dtype weights);
    // Arranges t_size rows of x, up to kSplitRows; absent rows are zero.
    void (*arrange)(std::byte* to, const float* x, int64_t t_size, int64_t size, Dtype weights);
    // y[t * ldy + n] = sum over k of x[t][k] * w[n][k], for n in [0, count) and t in [0, t_size); w
    // of any type but i8 and fp8, count up to kSplitOutputs. Every row of y has room for
    // count rounded up to 32. The order of a sum depends neither on t_size nor on count. scratch:
    // from a multiple of 64 on.
    void (*products)(float* y, int64_t ldy, const std::byte* x, int64_t t_size, const StoredRows& w,
                     int64_t count, std::byte* scratch);
};

}  // namespace hark
