// q6_k.
#pragma once

#include <cstring>

#include "kernels/quant/block_parts.h"
#include "kernels/quant/scale_search.h"

namespace hark {

// {128 bytes; 64 bytes of upper bits; 16 int8 scales; f16 d}: d * s * (q - 32). 64 bytes have the
// lower four bits of 128 values, byte l those of l and l + 64.
struct BlockQ6K {
    static constexpr int kValues = 256, kGroup = 16, kShared = 16, kBytes = 210;
    static constexpr bool kHasMin = false;
    static constexpr int kOffset = 32;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int g) {
        return half_at(block + 208) * static_cast<float>(static_cast<int8_t>(block[192 + g]));
    }
    static HARK_HOST_DEVICE float min(const uint8_t*, int) { return 0; }
    // The integers of all scales.
    using ScaleInteger = int8_t;
    static inline void scale_integers(const uint8_t* block, ScaleInteger* to) {
        std::memcpy(to, block + 192, 16);
    }
    static inline float scale_unit(const uint8_t* block) { return half_at(block + 208); }
    template <class Lanes>
    static HARK_HOST_DEVICE auto raw_quant(const uint8_t* block, int g, int j) {
        const auto low = Lanes::bytes(block + g / 8 * 64 + g % 4 * 16 + j) >> g / 4 % 2 * 4 & 15;
        return low | two_bits<Lanes>(block + 128, g, j) << 4;
    }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int g, int j) {
        return raw_quant<Lanes>(block, g, j) - kOffset;
    }

    static void quantize(uint8_t* to, const float* x) {
        const auto found = search_block<LinearLevels<-32, 31>, false, 16, 16>(x, -128, 127);
        std::memset(to, 0, kBytes);
        for (int i = 0; i < kValues; ++i) {
            uint8_t& low = to[i / 128 * 64 + i % 64];
            low = static_cast<uint8_t>(low | (found.quants[i] & 15) << i % 128 / 64 * 4);
            store_two_bits(to + 128, i, found.quants[i] >> 4);
        }
        for (int g = 0; g < 16; ++g)
            to[192 + g] = static_cast<uint8_t>(static_cast<int8_t>(found.scales[g]));
        store_half(to + 208, found.d);
    }
};

}  // namespace hark
