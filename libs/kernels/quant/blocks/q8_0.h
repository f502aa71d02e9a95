// q8_0.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/quant/block_parts.h"
#include "kernels/quant/make_blocks.h"

namespace hark {

// {f16 d; 32 int8}: d * q
struct BlockQ8_0 {
    static constexpr int kValues = 32, kGroup = 32, kShared = 32, kBytes = 34;
    static constexpr bool kHasMin = false;

    static HARK_HOST_DEVICE float scale(const uint8_t* block, int) { return half_at(block); }
    static HARK_HOST_DEVICE float min(const uint8_t*, int) { return 0; }
    template <class Lanes>
    static HARK_HOST_DEVICE auto quant(const uint8_t* block, int, int j) {
        return Lanes::signed_bytes(block + 2 + j);
    }

    static void quantize(uint8_t* to, const float* x) {
        float top = 0;
        for (int i = 0; i < kValues; ++i) top = std::max(top, std::abs(x[i]));
        const float d = top / 127, by = inverse_scale(d);
        store_half(to, d);
        for (int i = 0; i < kValues; ++i)
            to[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(x[i] * by)));
    }
};

}  // namespace hark
