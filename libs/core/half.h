// Conversions between float and the 16-bit types, one value at a time.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/f16.h"
#include "core/tensor.h"

namespace hark {

inline float to_float(float x) { return x; }

inline float to_float(bf16_t x) {
    const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}

// Whether f16 holds it exactly.
inline bool fits_f16(float x) {
    uint32_t magnitude;
    std::memcpy(&magnitude, &x, 4);
    magnitude &= 0x7fffffff;
    if (magnitude >= 0x38800000 && magnitude < 0x47800000)  // from 2^-14 to 2^16: normal in f16
        return (magnitude & 0x1fff) == 0;
    return to_float(to_f16(x)) == x;
}

inline bf16_t to_bf16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if ((bits & 0x7fffffff) > 0x7f800000) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
    return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

template <class T>
T from_float(float x);
template <>
inline float from_float<float>(float x) {
    return x;
}
template <>
inline f16_t from_float<f16_t>(float x) {
    return to_f16(x);
}
template <>
inline bf16_t from_float<bf16_t>(float x) {
    return to_bf16(x);
}

}  // namespace hark
