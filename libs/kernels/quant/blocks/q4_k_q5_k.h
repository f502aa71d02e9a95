// q4_k and q5_k.
#pragma once

#include <cstring>

#include "kernels/quant/block_parts.h"
#include "kernels/quant/scale_search.h"

namespace hark {

// {f16 d; f16 dmin; 12 bytes of scales; [32 bytes of fifth bits;] 128 bytes}: d * s * q - dmin * m.
// 32 bytes have 64 values, byte l value l in its lower half and value l + 32 in the upper one; the
// fifth bit of value i is bit i / 32 of byte i % 32. Scales and minima have six bits. Those of the
// first four groups are the lower six bits of bytes 0 to 3 and 4 to 7; the others have their upper
// two bits above these and their lower four in bytes 8 to 11.
template <bool fifth_bit>
struct BlockQ45K {
    static constexpr int kValues = 256, kGroup = 32, kShared = 32;
    static constexpr int kHigh = 16, kLow = kHigh + (fifth_bit ? 32 : 0);
    static constexpr int kBytes = kLow + 128;
    static constexpr bool kHasMin = true;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int g) {
        const uint8_t* scales = block + 4;
        const int s = g < 4 ? scales[g] & 63 : (scales[g + 4] & 15) | scales[g - 4] >> 6 << 4;
        return half_at(block) * static_cast<float>(s);
    }
    static HARK_HOST_DEVICE float min(const uint8_t* block, int g) {
        const uint8_t* scales = block + 4;
        const int m = g < 4 ? scales[g + 4] & 63 : scales[g + 4] >> 4 | scales[g] >> 6 << 4;
        return -(half_at(block + 2) * static_cast<float>(m));
    }
    // The integers of all scales, then of all minima: four bytes of six bits per word.
    using ScaleInteger = uint8_t;
    static inline void scale_integers(const uint8_t* block, ScaleInteger* to) {
        uint32_t from[3];
        std::memcpy(from, block + 4, sizeof from);
        const uint32_t each[4] = {
            from[0] & 0x3f3f3f3f, (from[2] & 0x0f0f0f0f) | (from[0] >> 6 & 0x03030303) << 4,
            from[1] & 0x3f3f3f3f, (from[2] >> 4 & 0x0f0f0f0f) | (from[1] >> 6 & 0x03030303) << 4};
        std::memcpy(to, each, sizeof each);
    }
    static inline float scale_unit(const uint8_t* block) { return half_at(block); }
    static inline float min_unit(const uint8_t* block) { return half_at(block + 2); }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int g, int j) {
        auto q = Lanes::bytes(block + kLow + g / 2 * 32 + j) >> g % 2 * 4 & 15;
        if (fifth_bit) q = q | (Lanes::bytes(block + kHigh + j) >> g & 1) << 4;
        return q;
    }

    static void quantize(uint8_t* to, const float* x) {
        const auto found =
            search_block<LinearLevels<0, fifth_bit ? 31 : 15>, true, 8, 32>(x, 0, 63);
        std::memset(to, 0, kBytes);
        store_half(to, found.d);
        store_half(to + 2, found.dmin);
        uint8_t* scales = to + 4;
        for (int g = 0; g < 8; ++g) {
            const int s = found.scales[g], m = found.mins[g];
            if (g < 4) {
                scales[g] = static_cast<uint8_t>(s);
                scales[g + 4] = static_cast<uint8_t>(m);
                continue;
            }
            scales[g + 4] = static_cast<uint8_t>((s & 15) | (m & 15) << 4);
            scales[g - 4] = static_cast<uint8_t>(scales[g - 4] | s >> 4 << 6);
            scales[g] = static_cast<uint8_t>(scales[g] | m >> 4 << 6);
        }
        for (int i = 0; i < kValues; ++i) {
            uint8_t& low = to[kLow + i / 64 * 32 + i % 32];
            low = static_cast<uint8_t>(low | (found.quants[i] & 15) << i / 32 % 2 * 4);
            if (!fifth_bit) continue;
            uint8_t& high = to[kHigh + i % 32];
            high = static_cast<uint8_t>(high | found.quants[i] >> 4 << i / 32);
        }
    }
};
using BlockQ4K = BlockQ45K<false>;
using BlockQ5K = BlockQ45K<true>;

}  // namespace hark
