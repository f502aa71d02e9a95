// Products of many rows with quantised weights by VNNI instructions: a panel of rows of weights is
// unpacked once to 16-bit integers, lane by lane, and multiplied by all rows of 16-bit activations.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace hark {

struct IntegerInputs;

// Rows of weights in a panel.
inline constexpr int64_t kPanelOutputs = 32;
// Columns that are unpacked at a time, and the bytes of these: {pairs of 16-bit integers; scales;
// minima} of each group of 16 weights of every row, the smallest group there is.
inline constexpr int64_t kPanelDepth = 4096;
inline constexpr int64_t kPanelBytes = kPanelDepth / 16 * kPanelOutputs * (16 * 2 + 4 + 4);

struct PanelKernels {
    // y[t * ldy + n] = sum over k of x[t][k] * w[n][k], for n in [0, count) and t in [0, t_size); w
    // (count, size) in blocks, count up to kPanelOutputs. Every row of y has room for
    // kPanelOutputs. The order of a sum depends neither on t_size nor on count. scratch:
    // kPanelBytes from a multiple of 64 on.
    void (*products)(float* y, int64_t ldy, const IntegerInputs& x, int64_t t_size,
                     const uint8_t* blocks, Dtype dtype, int64_t size, int64_t count,
                     uint8_t* scratch);
};

}  // namespace hark
