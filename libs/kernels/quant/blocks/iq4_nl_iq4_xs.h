// iq4_nl and iq4_xs: four bits stand for levels that are closer together near zero.
#pragma once

#include <cstring>

#include "kernels/quant/block_parts.h"
#include "kernels/quant/scale_search.h"

namespace hark {

struct Iq4Levels : SixteenLevels<kEightBytes<-127, -104, -83, -65, -49, -35, -22, -10>,
                                 kEightBytes<1, 13, 25, 38, 53, 69, 89, 113>> {
    static constexpr float kFirst = -127, kLast = 113;
    static float level(int index) {
        return static_cast<float>(ScalarLane::lookup<Iq4Levels>(index));
    }
    static int nearest(float x) {
        static constexpr float kBorders[] = {-115.5f, -93.5f, -74,   -57,   -42, -28.5f, -16, -4.5f,
                                             7,       19,     31.5f, 45.5f, 61,  79,     101};
        int index = 0;
        for (const float border : kBorders) index += x > border;
        return index;
    }
};

// {f16 d; 16 bytes}: d * level(q), four bits as in SmallBlock.
struct BlockIQ4NL {
    static constexpr int kValues = 32, kGroup = 16, kShared = 32, kBytes = 18;
    static constexpr bool kHasMin = false;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int) { return half_at(block); }
    static HARK_HOST_DEVICE float min(const uint8_t*, int) { return 0; }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int g, int j) {
        return Lanes::template lookup<Iq4Levels>(Lanes::four_bits(block + 2, g, j));
    }

    static void quantize(uint8_t* to, const float* x) {
        const float d = best_scale<Iq4Levels>(x, kValues).scale, by = inverse_scale(as_half(d));
        store_half(to, d);
        for (int i = 0; i < 16; ++i)
            to[2 + i] = static_cast<uint8_t>(Iq4Levels::nearest(x[i] * by) |
                                             Iq4Levels::nearest(x[i + 16] * by) << 4);
    }
};

// {f16 d; 2 bytes of upper bits; 4 bytes of scales; 128 bytes}: d * (s - 32) * level(q). 32 values
// share a scale of six bits: the lower four of scale i are half of byte i / 2, the upper two those
// from bit 2 * i of the 16 on.
struct BlockIQ4XS {
    static constexpr int kValues = 256, kGroup = 16, kShared = 32, kBytes = 136;
    static constexpr bool kHasMin = false;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int g) {
        const int i = g / 2, low = block[4 + i / 2] >> i % 2 * 4 & 15;
        const int high = (block[2] | block[3] << 8) >> 2 * i & 3;
        return half_at(block) * static_cast<float>((low | high << 4) - 32);
    }
    static HARK_HOST_DEVICE float min(const uint8_t*, int) { return 0; }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int g, int j) {
        return Lanes::template lookup<Iq4Levels>(
            Lanes::four_bits(block + 8 + g / 2 * 16, g % 2, j));
    }

    static void quantize(uint8_t* to, const float* x) {
        const auto found = search_block<Iq4Levels, false, 8, 32>(x, -32, 31);
        std::memset(to, 0, kBytes);
        store_half(to, found.d);
        for (int i = 0; i < 8; ++i) {
            const int s = found.scales[i] + 32;
            uint8_t &high = to[2 + i / 4], &low = to[4 + i / 2];
            high = static_cast<uint8_t>(high | s >> 4 << i % 4 * 2);
            low = static_cast<uint8_t>(low | (s & 15) << i % 2 * 4);
        }
        for (int i = 0; i < kValues; ++i) {
            uint8_t& byte = to[8 + i / 32 * 16 + i % 16];
            byte = static_cast<uint8_t>(byte | found.quants[i] << i % 32 / 16 * 4);
        }
    }
};

}  // namespace hark
