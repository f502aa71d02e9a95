// Conversions between float and f16 by integers: clang has no _Float16 for WebAssembly.
#pragma once

#include <bit>
#include <cstdint>

#include "core/tensor.h"

namespace hark {

inline float to_float(f16_t x) {
    const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fff) << 13;
    // f16's exponents are 112 lower. The product is exact, also of subnormal numbers.
    float value = std::bit_cast<float>(magnitude) * 0x1p112f;
    if (magnitude >= 0x0f800000) {  // infinity or NaN, which becomes quiet
        const uint32_t quiet = magnitude > 0x0f800000 ? 0x400000 : 0;
        value = std::bit_cast<float>(0x7f800000 | (magnitude & 0x7fffff) | quiet);
    }
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

// Round to nearest even.
inline f16_t to_f16(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
    const auto sign = static_cast<uint32_t>(bits >> 16 & 0x8000);
    uint32_t half;
    if (magnitude > 0x7f800000)
        half = 0x7e00 | (magnitude >> 13 & 0x3ff);  // NaN
    else if (magnitude >= 0x47800000)
        half = 0x7c00;  // 2^16 and more: infinity
    else if (magnitude < 0x38800000)
        // Below 2^-14: 0.5's last digit is the step of subnormal numbers, so the sum rounds to it.
        half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
    else
        half = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    return {static_cast<uint16_t>(half | sign)};
}

}  // namespace hark
