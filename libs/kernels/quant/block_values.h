// The values of ggml's quantised blocks, for the CPU and for a GPU. Source of the layouts and
// formulas: ggml's ggml-common.h (block_q4_0 to block_q6_K) and ggml-quants.c (dequantize_row_*).
//
// A block is cut into groups of kGroup neighbouring values. Value j of group g is
//
//     scale(g) * quant(g, j)               q4_0, q5_0, q8_0, q3_k, q6_k
//     scale(g) * quant(g, j) + min(g)      the others (kHasMin)
//
// kShared neighbouring values, one group or two, have the same scale and min. quant<Lanes>()
// returns value j, or a vector of j and the values after it, which may continue in the next group
// if g is even: Lanes reads bytes and bits.
// A quant fits eight bits with its sign. A scale has at most 19 significant bits, and its product
// with a quant 24: the product is exact in float32 and the sum is rounded once, fused or not. So
// every processor gives the same bits.
#pragma once

#include <cstdint>

#include "core/both.h"
#include "core/tensor.h"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#else
#include "core/half.h"
#endif

namespace hark {

// The f16 at two bytes, which need not be aligned.
HARK_BOTH float half_at(const uint8_t* bytes) {
    const uint16_t bits = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
#ifdef __CUDACC__
    return __half2float(__ushort_as_half(bits));
#else
    return to_float(f16_t{bits});
#endif
}

// Single values, for a GPU's threads.
struct ScalarLane {
    static HARK_BOTH int bytes(const uint8_t* from) { return *from; }
    static HARK_BOTH int signed_bytes(const uint8_t* from) { return static_cast<int8_t>(*from); }
    // Value j of group g of 32 values in two groups. The lower half of byte l of 16 is value l, the
    // upper half value l + 16.
    static HARK_BOTH int four_bits(const uint8_t* from, int g, int j) {
        return from[j] >> g * 4 & 15;
    }
    // Its fifth bit, times 16: bit l of 32 is that of value l.
    static HARK_BOTH int fifth_bit(const uint8_t* from, int g, int j) {
        const int bits = from[g * 2] | from[g * 2 + 1] << 8;
        return (bits >> j & 1) << 4;
    }
};

// {f16 d; [f16 m;] [32 high bits;] 16 bytes}: d * (q - 8 or 16), or d * q + m. Byte l has value l
// in its lower four bits and value l + 16 in the upper ones; the fifth bits of all 32 are separate.
template <bool minimum, bool fifth_bit>
struct SmallBlock {
    static constexpr int kValues = 32, kGroup = 16, kShared = 32;
    static constexpr int kHigh = minimum ? 4 : 2, kLow = kHigh + (fifth_bit ? 4 : 0);
    static constexpr int kBytes = kLow + 16;
    static constexpr bool kHasMin = minimum;

    static HARK_BOTH float scale(const uint8_t* block, int) { return half_at(block); }
    static HARK_BOTH float min(const uint8_t* block, int) { return half_at(block + 2); }
    template <class Lanes>
    static HARK_BOTH auto quant(const uint8_t* block, int g, int j) {
        auto q = Lanes::four_bits(block + kLow, g, j);
        if (fifth_bit) q = q | Lanes::fifth_bit(block + kHigh, g, j);
        return q - (minimum ? 0 : fifth_bit ? 16 : 8);
    }
};
using BlockQ4_0 = SmallBlock<false, false>;
using BlockQ4_1 = SmallBlock<true, false>;
using BlockQ5_0 = SmallBlock<false, true>;
using BlockQ5_1 = SmallBlock<true, true>;

// {f16 d; 32 int8}: d * q
struct BlockQ8_0 {
    static constexpr int kValues = 32, kGroup = 32, kShared = 32, kBytes = 34;
    static constexpr bool kHasMin = false;

    static HARK_BOTH float scale(const uint8_t* block, int) { return half_at(block); }
    static HARK_BOTH float min(const uint8_t*, int) { return 0; }
    template <class Lanes>
    static HARK_BOTH auto quant(const uint8_t* block, int, int j) {
        return Lanes::signed_bytes(block + 2 + j);
    }
};

// Two bits of value j of 16, from 64 bytes: 32 bytes have 128 values, byte l those of l, l + 32,
// ...
template <class Lanes>
HARK_BOTH auto two_bits(const uint8_t* bytes, int g, int j) {
    return Lanes::bytes(bytes + g / 8 * 32 + g % 2 * 16 + j) >> g / 2 % 4 * 2 & 3;
}

// {16 bytes of scales; 64 bytes; f16 d; f16 dmin}: d * s * q - dmin * m. s is the lower four bits
// of a group's byte, m the upper ones.
struct BlockQ2K {
    static constexpr int kValues = 256, kGroup = 16, kShared = 16, kBytes = 84;
    static constexpr bool kHasMin = true;

    static HARK_BOTH float scale(const uint8_t* block, int g) {
        return half_at(block + 80) * static_cast<float>(block[g] & 15);
    }
    static HARK_BOTH float min(const uint8_t* block, int g) {
        return -(half_at(block + 82) * static_cast<float>(block[g] >> 4));
    }
    template <class Lanes>
    static HARK_BOTH auto quant(const uint8_t* block, int g, int j) {
        return two_bits<Lanes>(block + 16, g, j);
    }
};

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

    static HARK_BOTH float scale(const uint8_t* block, int g) {
        const uint8_t* scales = block + 4;
        const int s = g < 4 ? scales[g] & 63 : (scales[g + 4] & 15) | scales[g - 4] >> 6 << 4;
        return half_at(block) * static_cast<float>(s);
    }
    static HARK_BOTH float min(const uint8_t* block, int g) {
        const uint8_t* scales = block + 4;
        const int m = g < 4 ? scales[g + 4] & 63 : scales[g + 4] >> 4 | scales[g] >> 6 << 4;
        return -(half_at(block + 2) * static_cast<float>(m));
    }
    template <class Lanes>
    static HARK_BOTH auto quant(const uint8_t* block, int g, int j) {
        auto q = Lanes::bytes(block + kLow + g / 2 * 32 + j) >> g % 2 * 4 & 15;
        if (fifth_bit) q = q | (Lanes::bytes(block + kHigh + j) >> g & 1) << 4;
        return q;
    }
};
using BlockQ4K = BlockQ45K<false>;
using BlockQ5K = BlockQ45K<true>;

// {128 bytes; 64 bytes of upper bits; 16 int8 scales; f16 d}: d * s * (q - 32). 64 bytes have the
// lower four bits of 128 values, byte l those of l and l + 64.
struct BlockQ6K {
    static constexpr int kValues = 256, kGroup = 16, kShared = 16, kBytes = 210;
    static constexpr bool kHasMin = false;

    static HARK_BOTH float scale(const uint8_t* block, int g) {
        return half_at(block + 208) * static_cast<float>(static_cast<int8_t>(block[192 + g]));
    }
    static HARK_BOTH float min(const uint8_t*, int) { return 0; }
    template <class Lanes>
    static HARK_BOTH auto quant(const uint8_t* block, int g, int j) {
        const auto low = Lanes::bytes(block + g / 8 * 64 + g % 4 * 16 + j) >> g / 4 % 2 * 4 & 15;
        return (low | two_bits<Lanes>(block + 128, g, j) << 4) - 32;
    }
};

// Calls use(block type {}) for a dtype that is_quantized().
template <class Use>
auto with_block_type(Dtype dtype, const Use& use) {
    switch (dtype) {
        case Dtype::q4_0:
            return use(BlockQ4_0{});
        case Dtype::q4_1:
            return use(BlockQ4_1{});
        case Dtype::q5_0:
            return use(BlockQ5_0{});
        case Dtype::q5_1:
            return use(BlockQ5_1{});
        case Dtype::q8_0:
            return use(BlockQ8_0{});
        case Dtype::q2_k:
            return use(BlockQ2K{});
        case Dtype::q3_k:
            return use(BlockQ3K{});
        case Dtype::q4_k:
            return use(BlockQ4K{});
        case Dtype::q5_k:
            return use(BlockQ5K{});
        default:
            return use(BlockQ6K{});
    }
}

// Number of neighbouring values with the same scale and min.
inline int64_t values_that_share(Dtype dtype) {
    return with_block_type(dtype, [](auto type) { return int64_t{decltype(type)::kShared}; });
}

}  // namespace hark
