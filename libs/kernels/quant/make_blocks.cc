#include "kernels/quant/make_blocks.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/half.h"

namespace hark {

void store_half(uint8_t* to, float value) {
    require(std::abs(value) < 65520.0f, "quantize: found a block whose scale ", value,
            " is not finite or beyond f16");
    const f16_t half = to_f16(value);
    std::memcpy(to, &half.bits, 2);
}

float inverse_scale(float scale) { return std::isfinite(1 / scale) ? 1 / scale : 0.0f; }

}  // namespace hark
