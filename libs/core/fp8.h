// Floats of eight bits, e4m3: a sign, four bits of exponent with the bias 7, three of fraction; no
// infinities, 0x7f is NaN. Source: Micikevicius et al. 2022, "FP8 Formats for Deep Learning".
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/tensor.h"

namespace hark {

inline constexpr float kLargestFp8 = 448;

inline float to_float(fp8_t x) {
    constexpr uint32_t kBias = (127 - 7) << 23;
    const uint32_t magnitude = x.bits & 0x7f, normal = (magnitude << 20) + kBias;
    float value;
    std::memcpy(&value, &normal, 4);
    if (magnitude < 8) value = static_cast<float>(magnitude) * 0x1p-9f;
    if (magnitude == 0x7f) value = std::numeric_limits<float>::quiet_NaN();
    return x.bits & 0x80 ? -value : value;
}

// Rounds to nearest even; beyond 448 to 448. NaN stays.
inline fp8_t to_fp8(float x) {
    // The last place of floats from 2^14 on is 2^-9, that of e4m3's subnormals.
    constexpr float kSubnormal = 0x1p14f;
    uint32_t bits, magnitude, subnormal, base;
    std::memcpy(&bits, &x, 4);
    const uint8_t sign = bits >> 24 & 0x80;
    if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<uint8_t>(sign | 0x7f)};
    const float absolute = std::min(sign ? -x : x, kLargestFp8), moved = absolute + kSubnormal;
    std::memcpy(&magnitude, &absolute, 4);
    std::memcpy(&subnormal, &moved, 4);
    std::memcpy(&base, &kSubnormal, 4);
    const uint32_t rounded = (magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
    const uint32_t normal = rounded - ((127 - 7) << 3);
    return {static_cast<uint8_t>(sign | (absolute < 0x1p-6f ? subnormal - base : normal))};
}

// The scale of a row whose largest magnitude is this: row = e4m3 * scale.
inline float fp8_scale(float largest) { return std::max(largest, 1e-30f) / kLargestFp8; }
// What the row is multiplied by before it is rounded.
inline float fp8_inverse(float largest) { return kLargestFp8 / std::max(largest, 1e-30f); }

}  // namespace hark
