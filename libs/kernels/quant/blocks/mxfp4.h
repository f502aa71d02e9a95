// mxfp4, the four bits of the OCP's MX formats: a sign, two bits of exponent, one of mantissa.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/quant/block_parts.h"

namespace hark {

// {byte e; 16 bytes}: 2^(e - 128) * level(q), four bits as in SmallBlock. The levels are twice the
// values of the four bits. Source: ggml's ggml-impl.h, ggml_e8m0_to_fp32_half.
struct BlockMXFP4 {
    static constexpr int kValues = 32, kGroup = 16, kShared = 32, kBytes = 17;
    static constexpr bool kHasMin = false;
    static constexpr bool kHalvesOfE2m1 = true;  // levels are twice the floats e2m1
    using Levels = SixteenLevels<kEightBytes<0, 1, 2, 3, 4, 6, 8, 12>,
                                 kEightBytes<0, -1, -2, -3, -4, -6, -8, -12>>;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int) {
        const uint32_t e = block[0], bits = e < 2 ? 0x200000u << e : (e - 1) << 23;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    static HARK_HOST_DEVICE float min(const uint8_t*, int) { return 0; }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int g, int j) {
        return Lanes::template lookup<Levels>(Lanes::four_bits(block + 1, g, j));
    }

    // The largest magnitude gets the largest exponent. Of two levels as near the one towards zero.
    static int nearest(float x) {
        const float size = std::abs(x);
        int index = 0;
        for (const float border : {0.5f, 1.5f, 2.5f, 3.5f, 5.0f, 7.0f, 10.0f})
            index += size > border;
        return index > 0 && x < 0 ? index + 8 : index;
    }
    static void quantize(uint8_t* to, const float* x) {
        float top = 0;
        for (int i = 0; i < kValues; ++i) top = std::max(top, std::abs(x[i]));
        to[0] = top > 0 ? static_cast<uint8_t>(std::max(std::ilogb(top) - 2 + 127, 0)) : 0;
        const float unit = scale(to, 0);
        for (int i = 0; i < 16; ++i)
            to[1 + i] = static_cast<uint8_t>(nearest(x[i] / unit) | nearest(x[i + 16] / unit) << 4);
    }
};

}  // namespace hark
