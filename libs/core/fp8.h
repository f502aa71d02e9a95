// Floats of eight bits, e4m3: a sign, four bits of exponent with the bias 7, three of fraction; no
// infinities, 0x7f is NaN. Source: Micikevicius et al. 2022, "FP8 Formats for Deep Learning".
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/tensor.h"

namespace hark {

inline constexpr float kLargestFp8 = 448;

// Without branches, as to_fp8(): loops of them are vectorised.
inline float to_float(fp8_t x) {
    const uint32_t magnitude = x.bits & 0x7f, sign = uint32_t{x.bits & 0x80u} << 24;
    const float small = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-9f;
    uint32_t subnormal;
    std::memcpy(&subnormal, &small, 4);
    // The seven bits are the end of the exponent, whose bias is another one, and the fraction.
    const uint32_t normal = (magnitude << 20) + ((127 - 7) << 23);
    const uint32_t is_small = 0 - uint32_t{magnitude < 8}, is_nan = 0 - uint32_t{magnitude == 0x7f};
    const uint32_t number = (subnormal & is_small) | (normal & ~is_small);
    const uint32_t bits = number | (0x7fc00000 & is_nan) | sign;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

// Rounds to nearest even; beyond 448 to 448. NaN stays.
inline fp8_t to_fp8(float x) {
    constexpr int32_t kLargest = 0x43e00000, kInfinity = 0x7f800000, kLeastNormal = 0x3c800000;
    // The last place of floats from 2^14 on is 2^-9, that of e4m3's subnormals.
    constexpr float kSubnormal = 0x1p14f;
    constexpr int32_t kSubnormalBits = 0x46800000;
    int32_t bits, subnormal;
    std::memcpy(&bits, &x, 4);
    const int32_t whole = bits & 0x7fffffff, is_over = -int32_t{whole > kLargest};
    const int32_t magnitude = (whole & ~is_over) | (kLargest & is_over);
    float absolute;
    std::memcpy(&absolute, &magnitude, 4);
    absolute += kSubnormal;
    std::memcpy(&subnormal, &absolute, 4);
    subnormal -= kSubnormalBits;
    const int32_t normal = ((magnitude + 0x7ffff + (magnitude >> 20 & 1)) >> 20) - ((127 - 7) << 3);
    const int32_t is_small = -int32_t{magnitude < kLeastNormal},
                  is_nan = -int32_t{whole > kInfinity};
    const int32_t number = (subnormal & is_small) | (normal & ~is_small) | (0x7f & is_nan);
    return {static_cast<uint8_t>(number | (bits >> 24 & 0x80))};
}

// What the largest magnitude of a row counts as at least: a row of zeros has a scale too.
inline constexpr float kLeastFp8Row = 1e-30f;
// The scale of a row whose largest magnitude is this: row = e4m3 * scale.
inline float fp8_scale(float largest) { return std::max(largest, kLeastFp8Row) / kLargestFp8; }
// What the row is multiplied by before it is rounded.
inline float fp8_inverse(float largest) { return kLargestFp8 / std::max(largest, kLeastFp8Row); }

}  // namespace hark
