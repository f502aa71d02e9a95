#include "kernels/quant/fp8_rows.h"

#include "core/fp8.h"

namespace hark {

float quantize_fp8(fp8_t* to, const float* from, int64_t n) {
    // Of the bits of magnitudes, which the compiler vectorises; NaN does not count.
    int32_t largest_bits = 0;
    for (int64_t i = 0; i < n; ++i) {
        int32_t bits;
        std::memcpy(&bits, from + i, 4);
        bits &= 0x7fffffff;
        bits = bits > 0x7f800000 ? 0 : bits;
        largest_bits = largest_bits > bits ? largest_bits : bits;
    }
    float largest;
    std::memcpy(&largest, &largest_bits, 4);
    const float inverse = fp8_inverse(largest);
    for (int64_t i = 0; i < n; ++i) to[i] = to_fp8(from[i] * inverse);
    return fp8_scale(largest);
}

void widen_fp8(float* to, const fp8_t* from, float scale, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]) * scale;
}

}  // namespace hark
