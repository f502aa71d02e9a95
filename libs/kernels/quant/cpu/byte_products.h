// Products of few rows with quantised weights by VNNI instructions: 64 quants of a row of weights
// at a time, as unsigned bytes, times the two bytes of 16-bit activations.
//
//     sum of w x = scale * (256 * sum of q high + sum of q low - offset * sum of x) + min * sum of
//     x
//
// with w = scale * (q - offset) + min and x = 256 * high + low. The sums of 4 products are exact.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace hark {

// Activations x = scales[row] * (256 * high + low), (t, size).
struct ByteInputs {
    int8_t *high = nullptr, *low = nullptr;  // (t, size)
    int32_t* offsets = nullptr;              // (t, size / 4): -offset of the type * sum of 4 values
    float* sums = nullptr;                   // (t, size / 32)
    const float* scales = nullptr;           // (t)
};

// Largest magnitude of 16-bit activations: `high` has to fit a signed byte.
inline constexpr int32_t kWideRange = 127 * 256 + 127;

struct ByteKernels {
    // Whether the others are for rows of `size` weights of this type.
    bool (*has)(Dtype dtype, int64_t size);
    // Fills row t of the inputs from 16-bit values.
    void (*split)(const ByteInputs& to, int64_t t, const int16_t* values, Dtype dtype,
                  int64_t size);
    // y[t * ldy + n] = sum over k of x[t][k] * w[n][k], for n in [0, count) and t in [0, t_size); w
    // (count, size) in blocks. The order of a sum depends neither on t_size nor on count.
    void (*products)(float* y, int64_t ldy, const ByteInputs& x, int64_t t_size,
                     const uint8_t* blocks, Dtype dtype, int64_t size, int64_t count);
};

}  // namespace hark
