// Conversions between float and f16 by the compiler's own type.
#pragma once

#include <cstring>

#include "core/tensor.h"

namespace hark {

#ifdef __aarch64__
using NativeHalf = __fp16;  // g++ 12 has no _Float16 here
#else
using NativeHalf = _Float16;
#endif

inline float to_float(f16_t x) {
    NativeHalf h;
    std::memcpy(&h, &x.bits, 2);
    return static_cast<float>(h);
}

// Round to nearest even.
inline f16_t to_f16(float x) {
    const NativeHalf h = static_cast<NativeHalf>(x);
    f16_t out;
    std::memcpy(&out.bits, &h, 2);
    return out;
}

}  // namespace hark
