// q3_k.
#pragma once

#include <cstring>

#include "kernels/quant/block_parts.h"
#include "kernels/quant/scale_search.h"

namespace hark {

// {32 bytes of high bits; 64 bytes; 12 bytes of scales; f16 d}: d * (s - 32) * (q - 4). The third
// bit of value i is bit i / 32 of byte i % 32. Scales have six bits: the lower four are stored as
// in SmallBlock, the upper two in four bytes, each for the groups j, j + 4, j + 8, j + 12.
struct BlockQ3K {
    static constexpr int kValues = 256, kGroup = 16, kShared = 16, kBytes = 110;
    static constexpr bool kHasMin = false;
    static constexpr int kOffset = 4;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int g) {
        const uint8_t* scales = block + 96;
        const int low = scales[g % 8] >> g / 8 * 4 & 15;
        const int high = scales[8 + g % 4] >> g / 4 * 2 & 3;
        return half_at(block + 108) * static_cast<float>((low | high << 4) - 32);
    }
    static HARK_HOST_DEVICE float min(const uint8_t*, int) { return 0; }
    template <class Lanes>
    static HARK_HOST_DEVICE auto raw_quant(const uint8_t* block, int g, int j) {
        return two_bits<Lanes>(block + 32, g, j) |
               (Lanes::bytes(block + g % 2 * 16 + j) >> g / 2 & 1) << 2;
    }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int g, int j) {
        return raw_quant<Lanes>(block, g, j) - kOffset;
    }

    static void quantize(uint8_t* to, const float* x) {
        const auto found = search_block<LinearLevels<-4, 3>, false, 16, 16>(x, -32, 31);
        std::memset(to, 0, kBytes);
        uint8_t* scales = to + 96;
        for (int g = 0; g < 16; ++g) {
            const int s = found.scales[g] + 32;
            scales[g % 8] = static_cast<uint8_t>(scales[g % 8] | (s & 15) << g / 8 * 4);
            scales[8 + g % 4] = static_cast<uint8_t>(scales[8 + g % 4] | s >> 4 << g / 4 * 2);
        }
        for (int i = 0; i < kValues; ++i) {
            to[i % 32] = static_cast<uint8_t>(to[i % 32] | found.quants[i] >> 2 << i / 32);
            store_two_bits(to + 32, i, found.quants[i] & 3);
        }
        store_half(to + 108, found.d);
    }
};

}  // namespace hark
