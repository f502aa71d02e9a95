// Rows of ggml's quantised blocks on the GPU (block_types.h).
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/quant/block_types.h"

namespace hark::cuda {

// Four numbers as the bytes of a word, in the operations of the blocks' quant(). A shift moves bits
// from byte to byte, which the following mask must clear.
struct Quad {
    uint32_t word;

    static constexpr __host__ __device__ uint32_t each(int byte) {
        return 0x01010101u * static_cast<uint32_t>(byte);
    }
    __device__ Quad operator>>(int bits) const { return {word >> bits}; }
    __device__ Quad operator<<(int bits) const { return {word << bits}; }
    __device__ Quad operator&(int byte) const { return {word & each(byte)}; }
    __device__ Quad operator|(Quad other) const { return {word | other.word}; }
    // Of numbers up to 127; the results have signs.
    __device__ Quad operator-(int byte) const {
        return {((word | each(128)) - each(byte)) ^ each(128)};
    }
};

// Those of ScalarLane's functions for four values that bytes() of Lane reads.
template <class Lane>
struct FourValues {
    static __device__ Quad signed_bytes(const uint8_t* from) { return Lane::bytes(from); }
    static __device__ Quad four_bits(const uint8_t* from, int g, int j) {
        return Lane::bytes(from + j) >> g * 4 & 15;
    }
    template <class Table>
    static __device__ Quad lookup(Quad i) {
        constexpr auto kWord = [](int at) {
            return static_cast<uint32_t>((at < 2 ? Table::kLower : Table::kUpper) >> at % 2 * 32);
        };
        const uint32_t places = i.word & Quad::each(7), pairs = places | places >> 4;
        const uint32_t selectors = __byte_perm(pairs, 0, 0x4420);
        const uint32_t lower = __byte_perm(kWord(0), kWord(1), selectors);
        const uint32_t upper = __byte_perm(kWord(2), kWord(3), selectors);
        uint32_t in_upper;  // 0 or 255 for each: copies of its fourth bit
        asm("prmt.b32 %0, %1, 0, 0xba98;" : "=r"(in_upper) : "r"(i.word << 4));
        return {(lower & ~in_upper) | (upper & in_upper)};
    }
};

// ScalarLane's functions for values j to j + 3; j is a multiple of 4, and the address one of
// `Align`.
template <int Align>
struct QuadLane : FourValues<QuadLane<Align>> {
    static __device__ Quad bytes(const uint8_t* from) {
        if constexpr (Align == 4) {
            return {*reinterpret_cast<const uint32_t*>(from)};
        } else if constexpr (Align == 2) {
            const auto* halves = reinterpret_cast<const uint16_t*>(from);
            return {__byte_perm(halves[0], halves[1], 0x5410)};
        } else {
            return {__byte_perm(from[0] | from[1] << 8, from[2] | from[3] << 8, 0x5410)};
        }
    }
    static __device__ Quad fifth_bit(const uint8_t* from, int g, int j) {
        const uint32_t bits = (from[g * 2 + j / 8] >> j % 8) & 15;
        // Four copies, 7 bits apart: bit i of the four is the lowest bit of byte i.
        return Quad{bits * 0x00204081u} << 4 & 16;
    }
};

// How the bytes of a block are aligned in memory.
template <class Block>
inline constexpr int kBlockAlign = Block::kBytes % 4 == 0   ? 4
                                   : Block::kBytes % 2 == 0 ? 2
                                                            : 1;

// The quants of values [at, at + 4) of a block; `at` is a multiple of 4.
template <class Block>
__device__ inline Quad load_quad(const uint8_t* block, int at) {
    return Block::template quant<QuadLane<kBlockAlign<Block>>>(block, at / Block::kGroup,
                                                               at % Block::kGroup);
}

// The same as numbers without a sign, kRawOffset larger.
template <class Block>
inline constexpr int kRawOffset = [] {
    if constexpr (requires { Block::kOffset; }) return Block::kOffset;
    return Block::kHasMin ? 0 : 128;
}();
template <class Block>
__device__ inline uint32_t load_raw_quad(const uint8_t* block, int at) {
    if constexpr (requires { Block::kOffset; }) {
        const int g = at / Block::kGroup, j = at % Block::kGroup;
        return Block::template raw_quant<QuadLane<kBlockAlign<Block>>>(block, g, j).word;
    } else {
        return load_quad<Block>(block, at).word ^ Quad::each(kRawOffset<Block>);
    }
}

// Four bytes b as two pairs of f16, exactly: 1024 + b is the byte below 0x64; minus the pair
// `offset`.
__device__ inline void bytes_to_pairs(uint32_t bytes, uint32_t offset, uint32_t (&pairs)[2]) {
    for (int i = 0; i < 2; ++i) {
        const uint32_t biased = __byte_perm(bytes, 0x64646464, i == 0 ? 0x4140 : 0x4342);
        const __half2 pair = __hsub2(reinterpret_cast<const __half2&>(biased),
                                     reinterpret_cast<const __half2&>(offset));
        pairs[i] = reinterpret_cast<const uint32_t&>(pair);
    }
}

// Four int8 as two pairs of f16, exactly: v + 128 are bytes, less 1152.
__device__ inline void int8_to_pairs(uint32_t bytes, uint32_t (&pairs)[2], __half) {
    bytes_to_pairs(bytes ^ 0x80808080, 0x64806480, pairs);
}

// Bytes 0 and 1 of a word, or 2 and 3, as two integers of 16 bits with their signs.
template <int I>
__device__ inline uint32_t signed_pair(uint32_t bytes) {
    uint32_t pair;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(pair) : "r"(bytes), "n"(I == 0 ? 0x9180 : 0xb3a2));
    return pair;
}

// Four e4m3, which are finite, as two pairs of 16-bit floats, exactly: the seven bits below the
// sign, moved by Shift to the end of the exponent and the begin of the fraction, where Mask keeps
// them, are the value / Power. All but Shift are of both floats of a Pair.
template <class Pair, int Shift, uint32_t Mask, uint32_t Power>
__device__ inline void moved_fp8_to_pairs(uint32_t bytes, uint32_t (&pairs)[2]) {
    constexpr uint32_t kPower = Power;
    const uint32_t spread[2] = {signed_pair<0>(bytes), signed_pair<1>(bytes)};
    for (int i = 0; i < 2; ++i) {
        const uint32_t moved = (spread[i] << Shift) & Mask;
        const Pair pair =
            __hmul2(reinterpret_cast<const Pair&>(moved), reinterpret_cast<const Pair&>(kPower));
        pairs[i] = reinterpret_cast<const uint32_t&>(pair);
    }
}

__device__ inline void fp8_to_pairs(uint32_t bytes, uint32_t (&pairs)[2], __nv_bfloat16) {
    moved_fp8_to_pairs<__nv_bfloat162, 4, 0x87f087f0, 0x7b807b80>(bytes, pairs);  // 2^120
}

// Before compute capability 8.9 no instruction does it.
__device__ inline void fp8_to_pairs(uint32_t bytes, uint32_t (&pairs)[2], __half) {
#if __CUDA_ARCH__ >= 890
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\n"
        "cvt.rn.f16x2.e4m3x2 %0, low;\ncvt.rn.f16x2.e4m3x2 %1, high;\n}"
        : "=r"(pairs[0]), "=r"(pairs[1])
        : "r"(bytes));
#else
    moved_fp8_to_pairs<__half2, 7, 0xbf80bf80, 0x5c005c00>(bytes, pairs);  // 2^8
#endif
}

constexpr int kBlockPack = 8;  // divides every group

// Values [k, k + 8) of a row; k is a multiple of 8.
template <class Block>
__device__ inline Pack<float, kBlockPack> load_blocks(const uint8_t* row, int64_t k) {
    const uint8_t* block = row + k / Block::kValues * Block::kBytes;
    const int at = static_cast<int>(k % Block::kValues), g = at / Block::kGroup;
    const float scale = Block::scale(block, g), min = Block::min(block, g);
    Pack<float, kBlockPack> values;
    for (int four = 0; four < kBlockPack; four += 4) {
        uint32_t pairs[2];
        int8_to_pairs(load_quad<Block>(block, at + four).word, pairs, __half());
        for (int v = 0; v < 4; ++v) {
            const __half2 pair = reinterpret_cast<const __half2&>(pairs[v / 2]);
            float& value = values.values[four + v];
            value = scale * __half2float(v % 2 == 0 ? pair.x : pair.y);
            if (Block::kHasMin) value += min;
        }
    }
    return values;
}

// Reads rows of quantised weights, as simt_kernel's Rows.
template <class Block>
struct BlockRows {
    using Stored = uint8_t;
    static constexpr int kVector = kBlockPack, kUnroll = 1;
    static __device__ Pack<float, kBlockPack> load(const uint8_t* row, int64_t k) {
        return load_blocks<Block>(row, k);
    }
};

// Quantised weights need f16 activations, aligned to 16 bytes: those of --dtype auto.
inline void check_half(const char* op, const Tensor& tensor) {
    require(tensor.dtype == Dtype::f16 && reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0, op,
            ": with quantised weights expected f16 activations aligned to 16 bytes, found ",
            tensor);
}

// linear of few rows and quantised weights (small_m_quantized.cu). A row's bits do not depend on
// the other rows.
void small_m_quantized(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                       const LinearFusion& with);

// The same of more rows (tiled_quantized.cu). How a row is summed depends on the number of rows.
void tiled_quantized(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then);

// The same on Hopper, which also fuses gated_activation (tiled_quantized_wgmma.cu).
bool has_quantized_wgmma();
void tiled_quantized_wgmma(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                           const LinearFusion& with);

// to (rows, K) f16 or bf16 = the values of quantised rows.
void dequantize(Context& ctx, Tensor to, Tensor from);

}  // namespace hark::cuda
