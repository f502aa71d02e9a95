// Conversions between float and f16 by the compiler's own type.
#pragma once

#include <cstring>

#include "core/tensor.h"

namespace hark {

inline float to_float(f16_t x) {
    _Float16 h;
    std::memcpy(&h, &x.bits, 2);
    return static_cast<float>(h);
}

// Round to nearest even.
inline f16_t to_f16(float x) {
    const _Float16 h = static_cast<_Float16>(x);
    f16_t out;
    std::memcpy(&out.bits, &h, 2);
    return out;
}

}  // namespace hark
