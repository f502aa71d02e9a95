// q3_k.
#pragma once

#include "kernels/quant/block_parts.h"

namespace hark {

// {32 bytes of high bits; 64 bytes; 12 bytes of scales; f16 d}: d * (s - 32) * (q - 4). The third
// bit of value i is bit i / 32 of byte i % 32. Scales have six bits: the lower four are stored as
// in SmallBlock, the upper two in four bytes, each for the groups j, j + 4, j + 8, j + 12.
struct BlockQ3K {
    static constexpr int kValues = 256, kGroup = 16, kShared = 16, kBytes = 110;
    static constexpr bool kHasMin = false;

    static HARK_BOTH float scale(const uint8_t* block, int g) {
        const uint8_t* scales = block + 96;
        const int low = scales[g % 8] >> g / 8 * 4 & 15;
        const int high = scales[8 + g % 4] >> g / 4 * 2 & 3;
        return half_at(block + 108) * static_cast<float>((low | high << 4) - 32);
    }
    static HARK_BOTH float min(const uint8_t*, int) { return 0; }
    template <class Lanes>
    static HARK_BOTH auto quant(const uint8_t* block, int g, int j) {
        return (two_bits<Lanes>(block + 32, g, j) |
                (Lanes::bytes(block + g % 2 * 16 + j) >> g / 2 & 1) << 2) -
               4;
    }
};

}  // namespace hark
