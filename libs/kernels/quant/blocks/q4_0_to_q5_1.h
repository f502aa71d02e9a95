// q4_0, q4_1, q5_0 and q5_1.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/quant/block_parts.h"
#include "kernels/quant/make_blocks.h"

namespace hark {

// {f16 d; [f16 m;] [32 high bits;] 16 bytes}: d * (q - 8 or 16), or d * q + m. Byte l has value l
// in its lower four bits and value l + 16 in the upper ones; the fifth bits of all 32 are separate.
template <bool minimum, bool fifth_bit>
struct SmallBlock {
    static constexpr int kValues = 32, kGroup = 16, kShared = 32;
    static constexpr int kHigh = minimum ? 4 : 2, kLow = kHigh + (fifth_bit ? 4 : 0);
    static constexpr int kBytes = kLow + 16;
    static constexpr bool kHasMin = minimum;
    static constexpr int kOffset = minimum ? 0 : fifth_bit ? 16 : 8;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int) { return half_at(block); }
    static HARK_HOST_DEVICE float min(const uint8_t* block, int) { return half_at(block + 2); }
    template <class Lanes>
    static HARK_HOST_DEVICE auto raw_quant(const uint8_t* block, int g, int j) {
        auto q = Lanes::four_bits(block + kLow, g, j);
        if (fifth_bit) q = q | Lanes::fifth_bit(block + kHigh, g, j);
        return q;
    }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int g, int j) {
        return raw_quant<Lanes>(block, g, j) - kOffset;
    }

    // The value of the largest magnitude, with its sign, becomes the lowest quant; with a minimum
    // the quants go from the smallest value to the largest one. They are computed with the scale
    // before its rounding.
    static void quantize(uint8_t* to, const float* x) {
        constexpr int kTop = fifth_bit ? 31 : 15;
        const auto [low, high] = std::minmax_element(x, x + kValues);
        const float* largest = std::max_element(
            x, x + kValues, [](float a, float b) { return std::abs(a) < std::abs(b); });
        const float d = minimum ? (*high - *low) / static_cast<float>(kTop)
                                : *largest / static_cast<float>(-(kTop + 1) / 2);
        const float by = inverse_scale(d), zero = minimum ? 0.0f : (kTop + 1) / 2;
        store_half(to, d);
        if (minimum) store_half(to + 2, *low);
        int q[kValues];
        for (int i = 0; i < kValues; ++i) {
            const float scaled = (minimum ? x[i] - *low : x[i]) * by;
            q[i] = std::min(static_cast<int>(scaled + zero + 0.5f), kTop);
        }
        store_quants(to, q);
    }
    static void store_quants(uint8_t* to, const int (&q)[kValues]) {
        uint32_t high = 0;
        for (int i = 0; i < kValues; ++i) high |= static_cast<uint32_t>(q[i] >> 4) << i;
        for (int i = 0; fifth_bit && i < 4; ++i)
            to[kHigh + i] = static_cast<uint8_t>(high >> 8 * i);
        for (int i = 0; i < 16; ++i)
            to[kLow + i] = static_cast<uint8_t>((q[i] & 15) | (q[i + 16] & 15) << 4);
    }
};
using BlockQ4_0 = SmallBlock<false, false>;
using BlockQ4_1 = SmallBlock<true, false>;
using BlockQ5_0 = SmallBlock<false, true>;
using BlockQ5_1 = SmallBlock<true, true>;

}  // namespace hark
