#include "kernels/quant/fp8_rows.h"

#include <cmath>

#include "core/fp8.h"

namespace hark {

float quantize_fp8(fp8_t* to, const float* from, int64_t n) {
    float largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(from[i]));
    const float inverse = fp8_inverse(largest);
    for (int64_t i = 0; i < n; ++i) to[i] = to_fp8(from[i] * inverse);
    return fp8_scale(largest);
}

void widen_fp8(float* to, const fp8_t* from, float scale, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]) * scale;
}

}  // namespace hark
