// 16 whole rows of w in shared memory, as stored, times one row of x: what quantized_whole_rows.cuh
// multiplies.
//
// Of mxfp4 by the matrix units' products of int8. A permutation of bytes (prmt) takes its four
// selectors from 16 bits: it makes four e2m1 four bytes, twice their magnitudes. Where a selector's
// highest bit, the sign, is set the byte is 0. So one product has the positive weights and another
// one, of flipped signs, the negative ones. x is rounded to 14 bits of the largest value of its
// block: two bytes, in two columns of a product. Sums of a block are integers, exact; the scales of
// weights and of x are applied to them in f32.
#pragma once

#include "kernels/cuda/mma.cuh"
#include "kernels/linear/quantized_row_chunks.cuh"

namespace hark::cuda {

// sums (16, 8) += a (16, 32) b (32, 8), fragments as in PTX's mma.m16n8k32 of int8.
__device__ inline void mma(int (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Lane 4 g + t multiplies parts of rows 2 g and 2 g + 1. kColumns: of a unit, which is multiplied
// at a time; kMultiple: of K.
template <class Value, class Block, int Columns = 256>
class RowsOfTile {
  public:
    using X = Value;
    using Chunks = quantized_row::RowOfChunks<Block, Columns>;
    static constexpr int kColumns = Chunks::kColumns, kMultiple = kColumns;

    // Loads of 4 bytes of rows that begin in one bank take longer than OneRow does.
    static bool takes(int64_t stride) {
        return !std::is_same_v<Block, BlockQ8_0> || stride % 128 != 0;
    }
    // Of shared memory for x, and what all threads of a block, which then meets, write there.
    static __host__ __device__ int input_bytes(int) { return 0; }
    static __device__ void load_inputs(uint8_t*, const X*, int, int, int, int) {}

    __device__ RowsOfTile(const uint8_t*, const X* x, int, int stride)
        : x_(x), at_(static_cast<int>(threadIdx.x) % 32 / 4 * 2 * stride), stride_(stride) {}
    __device__ void clear() { chunks_ = {}; }
    __device__ void multiply(const uint8_t* tile, int unit) {
        const uint8_t* low = tile + at_ + unit * (kColumns / Block::kValues * Block::kBytes);
        chunks_.multiply(low, low + stride_, x_ + unit * kColumns);
    }
    // The lane's part of row 2 g + half.
    __device__ float sum(int half) const { return chunks_.sum(half); }

  private:
    const X* x_;
    int at_, stride_;
    Chunks chunks_;
};

// A unit is four blocks, one per t. Product i of a unit has bytes 4 i to 4 i + 3 of all four;
// columns 2 t and 2 t + 1 have x of block t alone. So a lane ends with the sums of its own blocks.
template <class Value>
class RowsOfTile<Value, BlockMXFP4> {
  public:
    using X = Value;
    static constexpr int kMultiple = BlockMXFP4::kValues, kColumns = 4 * kMultiple;

    static bool takes(int64_t) { return true; }
    static __host__ __device__ int input_bytes(int units) { return kBegin + units * kUnitBytes; }
    static __device__ void load_inputs(uint8_t* inputs, const X* x, int k, int units, int warp,
                                       int warps) {
        constexpr int kTogether = 3;  // loads in flight
        if (threadIdx.x < kZeros / 4) reinterpret_cast<uint32_t*>(inputs)[threadIdx.x] = 0;
        if (threadIdx.x == 0) *reinterpret_cast<uint32_t*>(inputs + kZeros) = kLowerLevels;
        for (int first = warp; first < units; first += kTogether * warps) {
            Four values[kTogether];
#pragma unroll
            for (int i = 0; i < kTogether; ++i) values[i] = load_four(x, k, first + i * warps);
#pragma unroll
            for (int i = 0; i < kTogether; ++i)
                if (const int unit = first + i * warps; unit < units)
                    store_four(inputs + kBegin + unit * kUnitBytes, values[i]);
        }
    }

    __device__ RowsOfTile(const uint8_t* inputs, const X*, int k, int stride)
        : lower_levels_(*reinterpret_cast<const uint32_t*>(inputs + kZeros)),
          scales_(reinterpret_cast<const float*>(inputs + kBegin + kPartsBytes) + threadIdx.x % 4),
          blocks_(k / kMultiple) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const bool has_x = g / 2 == t;
        inputs_ = has_x ? inputs + kBegin + t * 2 * kMultiple + g % 2 * kMultiple : inputs;
        inputs_step_ = has_x ? kUnitBytes : 0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int at = (2 * g + half) * stride + t * BlockMXFP4::kBytes;
            at_[half] = at - at % 4;
            shift_[half] = at % 4 * 8;
        }
    }
    __device__ void clear() { sums_[0] = sums_[1] = 0; }

    // tile: aligned to 4 bytes. Lanes without a block read up to 54 bytes past it.
    __device__ void multiply(const uint8_t* tile, int unit) {
        const auto* x = reinterpret_cast<const uint4*>(inputs_ + unit * inputs_step_);
        const uint4 first = x[0], second = x[1];
        uint32_t words[2][5];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint8_t* from = tile + at_[half] + unit * (4 * BlockMXFP4::kBytes);
#pragma unroll
            for (int i = 0; i < 5; ++i) words[half][i] = reinterpret_cast<const uint32_t*>(from)[i];
        }
        int above[4] = {}, below[4] = {};  // of positive weights and of the others
        multiply_words(above, below, words, 0, first.x, first.y);
        multiply_words(above, below, words, 1, first.z, first.w);
        multiply_words(above, below, words, 2, second.x, second.y);
        multiply_words(above, below, words, 3, second.z, second.w);
        const float scale = scales_[unit * (kUnitBytes / 4)];
        const bool is_there = 4 * unit + static_cast<int>(threadIdx.x % 4) < blocks_;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int sum = (above[2 * half] - below[2 * half]) * 256 +
                            (above[2 * half + 1] - below[2 * half + 1]);
            const float by = twice_scale(words[half][0] >> shift_[half]) * scale;
            sums_[half] = fmaf(is_there ? by : 0, static_cast<float>(sum), sums_[half]);
        }
    }
    __device__ float sum(int half) const { return sums_[half]; }

  private:
    // Twice the magnitudes of the four e2m1 below 2, and of the others.
    static constexpr uint32_t kLowerLevels = 0x03020100, kUpperLevels = 0x0c080604;
    // x in shared memory: zeros for lanes without x, kLowerLevels, which the compiler would put
    // into a register for each use, and for each unit [block][part][32] bytes and [block] f32.
    static constexpr int kZeros = 32, kBegin = kZeros + 16;
    static constexpr int kPartsBytes = 4 * 2 * kMultiple, kUnitBytes = kPartsBytes + 4 * 4;

    // Eight lanes per block, four values each, in the order of w's halves of bytes: value i is in a
    // lower half, i + 16 in the upper one.
    struct Four {
        Pack<X, 2> low{}, high{};
    };
    static __device__ Four load_four(const X* x, int k, int unit) {
        const int lane = threadIdx.x % 32, first = unit * kColumns + lane / 8 * kMultiple;
        if (first >= k) return {};
        const X* from = x + first + lane % 8 * 2;
        return {load_pack<2>(from), load_pack<2>(from + 16)};
    }
    static __device__ void store_four(uint8_t* to, const Four& four) {
        const int lane = threadIdx.x % 32, block = lane / 8, at = lane % 8;
        float values[4];
        for (int i = 0; i < 2; ++i) {
            values[2 * i] = to_f32(four.low.values[i]);
            values[2 * i + 1] = to_f32(four.high.values[i]);
        }
        uint32_t largest = 0;  // of the magnitudes' bits
        for (const float value : values)
            largest = max(largest, __float_as_uint(value) & 0x7fffffff);
        for (int step = 1; step < 8; step *= 2)
            largest = max(largest, __shfl_xor_sync(0xffffffff, largest, step));
        // The largest integer has 14 bits: then the upper of two bytes with signs is 64 at most.
        constexpr uint32_t kTop = 13, kBias = 127;
        const uint32_t exponent = max(largest >> 23, kTop + 2);
        const float by = __uint_as_float((2 * kBias + kTop - exponent) << 23);
        uint32_t upper = 0, lower = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int integer = __float2int_rn(values[i] * by);
            upper |= static_cast<uint32_t>((integer + 128) >> 8 & 255) << 8 * i;
            lower |= static_cast<uint32_t>(integer & 255) << 8 * i;
        }
        auto* words = reinterpret_cast<uint32_t*>(to) + block * (2 * kMultiple / 4) + at;
        words[0] = upper;
        words[kMultiple / 4] = lower;
        if (at != 0) return;
        // Halved, since levels() are twice the weights. Infinity and NaN make all sums NaN.
        const float scale = __uint_as_float((exponent - kTop - 1) << 23);
        reinterpret_cast<float*>(to + kPartsBytes)[block] = largest >> 23 == 255 ? NAN : scale;
    }

    // The products of word i of the lanes' blocks.
    __device__ void multiply_words(int (&above)[4], int (&below)[4], const uint32_t (&words)[2][5],
                                   int i, uint32_t x0, uint32_t x1) const {
        uint32_t a[4], b[4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint32_t word =
                __funnelshift_rc(words[half][i], words[half][i + 1], shift_[half] + 8);
            const uint32_t flipped = word ^ 0x88888888;
            a[half] = levels(word);
            a[2 + half] = levels(word >> 16);
            b[half] = levels(flipped);
            b[2 + half] = levels(flipped >> 16);
        }
        mma(above, a, x0, x1);
        mma(below, b, x0, x1);
    }
    // Twice the magnitudes of the four e2m1 in the lower 16 bits; 0 of those with a sign.
    __device__ uint32_t levels(uint32_t four) const {
        uint32_t bytes;
        asm("prmt.b32 %0, %1, %2, %3;"
            : "=r"(bytes)
            : "r"(lower_levels_), "r"(kUpperLevels), "r"(four));
        return bytes;
    }
    // 2^(e - 127) of the first byte e.
    static __device__ float twice_scale(uint32_t word) {
        constexpr uint32_t kSmallest = 0x400000;  // 2^-127
        return __uint_as_float(max((word & 255) << 23, kSmallest));
    }

    uint32_t lower_levels_;  // kLowerLevels
    const uint8_t* inputs_;
    const float* scales_;
    int blocks_, inputs_step_, at_[2], shift_[2];
    float sums_[2];
};

template <class X, class Block>
constexpr bool kHasRowsOfTile = [] {
    if constexpr (std::is_same_v<Block, BlockMXFP4>) return true;
    return std::is_same_v<X, __half> && requires { quantized_row::RowOfChunks<Block>::kPitch; };
}();

}  // namespace hark::cuda
