// A chunk of 16 quantised rows times one row of x. A share is the neighbouring values of a block
// that have one scale. mma.m16n8k16 has eight columns for rows of x; here each has x of another
// share. So a lane ends with the sums of the shares whose scales it computes, and multiplies them
// once per chunk.
#pragma once

#include "kernels/linear/quantized_chunk.cuh"

namespace hark::cuda {

// Four quants as two pairs of X. An integer from 0 to 255 is the bits of an f16 of its value times
// 2^-24, so nothing converts the quants as they are stored (load_raw_quad). bf16 and e2m1 are the
// values themselves.
template <class X, class Block>
struct OneRowQuants {
    static constexpr bool kIntegers =
        std::is_same_v<X, __half> && !requires { Block::kHalvesOfE2m1; };
    static constexpr float kUnit = kIntegers ? 0x1p24f : 1.0f;  // of the sums
    static constexpr int kOffset = kIntegers ? kRawOffset<Block> : 0;
    static constexpr bool kHasMin = Block::kHasMin || kOffset > 0;
    static_assert(kIntegers || !kHasMin);
    // Two times 2^-24: sums of x are products with it.
    static constexpr uint32_t kOnes = 0x00010001;

    static __device__ void load(const uint8_t* block, int at, int own, uint32_t (&pairs)[2]) {
        if constexpr (kIntegers) {
            const uint32_t quants = load_raw_quad<Block>(block, at + own);
            pairs[0] = __byte_perm(quants, 0, 0x4140);
            pairs[1] = __byte_perm(quants, 0, 0x4342);
        } else {
            load_pairs<X, Block>(block, at, own, pairs);
        }
    }
};

// The sums of 16 rows of w, slice by slice of one row of x. Share 4 i + j of a chunk is column
// 2 j + i % 2 of a product: lane 4 g + t has its sums of rows g and g + 8 if t is j.
template <class X, class Block>
class OneRow {
  public:
    // Few values per chunk are much work per value. More bytes leave shared memory to fewer warps.
    using Shape = ChunkShape<Block, Block::kValues == 256 || Block::kBytes <= 24 ? 256 : 128>;
    // Sums in many registers, of few warps, take less time than in the 64 that two blocks of 16
    // warps would have.
    static constexpr int kRows = 1, kMostSlices = 8, kBlocks = 2;

    // x: from the row's first value on.
    template <class Tile>
    __device__ OneRow(const X* x, const Tile& tile, int k) : x_(x + int64_t{tile.from(0)} * k) {}

    __device__ void clear() { sums_[0] = sums_[1] = 0; }

    // low, high: a chunk of rows g and g + 8; first: its first column; columns: those before K.
    __device__ void multiply(const uint8_t* low, const uint8_t* high, int first, int columns) {
#pragma unroll
        for (int set = 0; set < kSets; ++set) multiply_set(set, low, high, first, columns);
    }

    // Adds up the lanes' sums and writes them: the 16 rows'.
    __device__ void store(float* sums) {
        const int g = threadIdx.x % 32 / 4;
        for (int half = 0; half < 2; ++half) {
            sums_[half] += __shfl_xor_sync(0xffffffff, sums_[half], 1);
            sums_[half] += __shfl_xor_sync(0xffffffff, sums_[half], 2);
            if (threadIdx.x % 4 == 0) sums[8 * half + g] = sums_[half] * Quants::kUnit;
        }
    }

  private:
    using Quants = OneRowQuants<X, Block>;
    static constexpr int kColumns = Shape::kColumns;
    static constexpr int kShares = kColumns / Block::kShared, kSteps = Block::kShared / 16;
    // Up to eight shares are the columns of a product: two of each lane, or one.
    static constexpr int kMine = std::min(kShares / 4, 2), kSets = kShares / 4 / kMine;
    // Blocks of 256 values fill chunks.
    static constexpr bool kFull = Block::kValues == kColumns;

    // The first column of the set's share 4 i + j.
    static __device__ int column(int set, int i, int j) {
        return (4 * (kMine * set + i) + j) * Block::kShared;
    }
    __device__ void multiply_set(int set, const uint8_t* low, const uint8_t* high, int first,
                                 int columns) {
        const int t = threadIdx.x % 4;
        uint2 x[kSteps];
        load_x(x, set, first, columns);
        float inputs[4] = {}, products[kMine][2] = {};  // of shares 4 i + t
        if constexpr (Quants::kHasMin)
            for (int step = 0; step < kSteps; ++step)
                mma(X{}, inputs, Quants::kOnes, Quants::kOnes, Quants::kOnes, Quants::kOnes,
                    x[step].x, x[step].y);
#pragma unroll
        for (int share = 0; share < 4 * kMine; ++share) {
            const int i = share / 4, at = column(set, i, share % 4);
            const int block = at / Block::kValues * Block::kBytes;
            float of_share[4] = {};
#pragma unroll
            for (int step = 0; step < kSteps; ++step) {
                uint32_t a[2][2];
                Quants::load(low + block, at % Block::kValues + 16 * step, 4 * t, a[0]);
                Quants::load(high + block, at % Block::kValues + 16 * step, 4 * t, a[1]);
                mma(X{}, of_share, a[0][0], a[1][0], a[0][1], a[1][1], x[step].x, x[step].y);
            }
            if (t != share % 4) continue;
            products[i][0] = of_share[i];
            products[i][1] = of_share[2 + i];
        }
#pragma unroll
        for (int i = 0; i < kMine; ++i) {
            const int at = column(set, i, t);
            if (!kFull && at >= columns) continue;  // past the matrix
            add(sums_[0], low, at, products[i][0], inputs[i]);
            add(sums_[1], high, at, products[i][1], inputs[i]);
        }
    }
    // The lane's x: of the share that is column g.
    __device__ void load_x(uint2 (&x)[kSteps], int set, int first, int columns) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const int at = column(set, g % kMine, g / 2);
#pragma unroll
        for (int step = 0; step < kSteps; ++step)
            x[step] = kFull || at < columns
                          ? *reinterpret_cast<const uint2*>(x_ + first + at + 16 * step + 4 * t)
                          : uint2{0, 0};
    }
    // sum += the products and inputs of a chunk's values from `at` on, times scale and minimum.
    static __device__ void add(float& sum, const uint8_t* chunk, int at, float products,
                               float inputs) {
        const uint8_t* block = chunk + at / Block::kValues * Block::kBytes;
        const int group = at % Block::kValues / Block::kGroup;
        const float by = Block::scale(block, group);
        sum = fmaf(by, products, sum);
        if constexpr (Quants::kHasMin) {
            const float min =
                Block::kHasMin ? Block::min(block, group) : by * static_cast<float>(-Quants::kOffset);
            sum = fmaf(min, inputs, sum);
        }
    }

    const X* x_;
    float sums_[2];
};

}  // namespace hark::cuda
