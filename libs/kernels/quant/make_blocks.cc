#include "kernels/quant/make_blocks.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/half.h"

namespace hark {

namespace {

f16_t checked_half(float value) {
    require(std::abs(value) < 65520.0f, "quantize: found a block whose scale ", value,
            " is not finite or beyond f16");
    return to_f16(value);
}

}  // namespace

void store_half(uint8_t* to, float value) {
    const f16_t half = checked_half(value);
    std::memcpy(to, &half.bits, 2);
}

float as_half(float value) { return to_float(checked_half(value)); }

float inverse_scale(float scale) { return std::isfinite(1 / scale) ? 1 / scale : 0.0f; }

}  // namespace hark
