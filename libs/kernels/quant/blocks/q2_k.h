// q2_k.
#pragma once

#include <cstring>

#include "kernels/quant/block_parts.h"
#include "kernels/quant/scale_search.h"

namespace hark {

// {16 bytes of scales; 64 bytes; f16 d; f16 dmin}: d * s * q - dmin * m. s is the lower four bits
// of a group's byte, m the upper ones.
struct BlockQ2K {
    static constexpr int kValues = 256, kGroup = 16, kShared = 16, kBytes = 84;
    static constexpr bool kHasMin = true;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int g) {
        return half_at(block + 80) * static_cast<float>(block[g] & 15);
    }
    static HARK_HOST_DEVICE float min(const uint8_t* block, int g) {
        return -(half_at(block + 82) * static_cast<float>(block[g] >> 4));
    }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int g, int j) {
        return two_bits<Lanes>(block + 16, g, j);
    }

    static void quantize(uint8_t* to, const float* x) {
        const auto found = search_block<LinearLevels<0, 3>, true, 16, 16>(x, 0, 15);
        std::memset(to, 0, kBytes);
        for (int g = 0; g < 16; ++g)
            to[g] = static_cast<uint8_t>(found.scales[g] | found.mins[g] << 4);
        for (int i = 0; i < kValues; ++i) store_two_bits(to + 16, i, found.quants[i]);
        store_half(to + 80, found.d);
        store_half(to + 82, found.dmin);
    }
};

}  // namespace hark
