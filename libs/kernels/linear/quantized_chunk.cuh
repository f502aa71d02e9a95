// Chunks of quantised rows, as small_m_quantized.cuh multiplies them: how they get to shared memory
// and to the matrix units.
#pragma once

#include "kernels/linear/small_m_mma.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {

constexpr int kGroupRows = 16;  // of w, multiplied by a warp

// A chunk of a row in shared memory, at the same place between multiples of 32 bytes as in memory:
// a GPU reads whole sectors of 32 bytes.
template <class Block, int Columns = Block::kValues == 256 ? 256 : 128>
struct ChunkShape {
    static constexpr int kColumns = Columns;
    static constexpr int kBytes = kColumns / Block::kValues * Block::kBytes;
    static constexpr int kPieces = (kBytes + 62) / 32 * 2;  // of 16 bytes, wherever it begins
    static constexpr int kPitch = 16 * (kPieces + 1);       // odd: eight rows hit all banks
    static constexpr int kStage = kGroupRows * kPitch;
};

// cp.async of 16 bytes if `at` is before `end`. Up to 15 of them may be past the matrix: the memory
// of a GPU is allocated in multiples of 256.
__device__ inline void copy_piece(uint32_t to, const uint8_t* from, int at, int end) {
    asm volatile(
        "{ .reg .pred before; setp.lt.s32 before, %2, %3;"
        " @before cp.async.cg.shared.global.L2::128B [%0], [%1], 16; }" ::"r"(to),
        "l"(from), "r"(at), "r"(end)
        : "memory");
}

// Starts to copy a chunk of up to 16 rows to a stage, eight lanes per row: 128 bytes of each of
// four rows at once. from: the chunk in a group's first row; upper: from its first row to row 8, in
// bytes; count: of the first and of the last eight rows, those that exist.
template <class Shape>
__device__ void start_copy(uint32_t stage, const uint8_t* from, int64_t stride, int64_t upper,
                           const int (&count)[2], int bytes) {
    const int row = threadIdx.x % 32 / 8, at = threadIdx.x % 8 * 16;
#pragma unroll
    for (int first = 0; first < kGroupRows; first += 4) {
        const int in_half = first % 8 + row;
        const uint8_t* of_row = from + (first < 8 ? 0 : upper) + in_half * stride;
        const int phase = static_cast<int>(reinterpret_cast<uintptr_t>(of_row) % 32);
        const int end = in_half < count[first / 8] ? phase + bytes : 0;
        const uint32_t to = stage + (first + row) * Shape::kPitch + at;
#pragma unroll
        for (int piece = 0; piece < 16 * Shape::kPieces; piece += 128)
            copy_piece(to + piece, of_row - phase + at + piece, at + piece, end);
    }
}

// Value i of a row, of which each of the row's four lanes has every fourth.
template <class T, int N>
__device__ T of_lane(const T (&values)[N], int i) {
    return __shfl_sync(0xffffffff, values[i / 4], static_cast<int>(threadIdx.x % 32 & 28) | i % 4);
}

// Scales and minima of a chunk's values in one row. Those of blocks of 256 values take some work,
// so each of the row's four lanes computes a quarter of them.
template <class Block>
class ChunkScales {
  public:
    __device__ explicit ChunkScales(const uint8_t* chunk) : chunk_(chunk) {
        if constexpr (kDivided)
            for (int i = 0; i < kMine; ++i) {
                const int g = (4 * i + threadIdx.x % 4) * Block::kShared / Block::kGroup;
                scales_[i] = Block::scale(chunk, g);
                mins_[i] = Block::min(chunk, g);
            }
    }
    // Of the values from `at` of the chunk on. All lanes call these.
    __device__ float scale(int at) const {
        if constexpr (kDivided) return of_lane(scales_, at / Block::kShared);
        return Block::scale(block(at), 0);
    }
    __device__ float min(int at) const {
        if constexpr (kDivided) return of_lane(mins_, at / Block::kShared);
        return Block::min(block(at), 0);
    }

  private:
    static constexpr bool kDivided = Block::kValues > Block::kShared;
    static constexpr int kMine = kDivided ? Block::kValues / Block::kShared / 4 : 1;

    __device__ const uint8_t* block(int at) const {
        return chunk_ + at / Block::kValues * Block::kBytes;
    }

    const uint8_t* chunk_;
    float scales_[kMine] = {}, mins_[kMine] = {};
};

// Four quants as two pairs of X, exactly. Those of blocks with minima are not negative.
template <class X, class Block>
__device__ void quants_to_pairs(Quad quants, uint32_t (&pairs)[2]) {
    if (!Block::kHasMin || std::is_same_v<X, __nv_bfloat16>)
        return int8_to_pairs(quants.word, pairs, X());
    bytes_to_pairs(quants.word, 0x64006400, pairs);  // less 1024
}

// Four e2m1 as two pairs of X, times 2. The low halves of `spread` hold numbers 0 and 2 in their
// bits 3 to 0 or, with Shift 4, 7 to 4; its high halves 1 and 3. Sign, exponent and mantissa are
// those of X, whose exponent has another bias; subnormal numbers become what they are in e2m1.
template <class X, int Shift>
__device__ void e2m1_to_pair(uint32_t spread, uint32_t& pair) {
    constexpr bool kHalf = std::is_same_v<X, __half>;
    constexpr int kMantissa = kHalf ? 10 : 7;
    constexpr uint32_t kRest = 7u << (kMantissa - 1);
    const uint32_t bits = (spread << (12 - Shift) & 0x80008000) |
                          (spread << (kMantissa - 1 - Shift) & (kRest | kRest << 16));
    if constexpr (kHalf) {
        const __half2 by = __half2half2(__ushort_as_half(0x7800));  // 2^15
        const __half2 product = __hmul2(reinterpret_cast<const __half2&>(bits), by);
        pair = reinterpret_cast<const uint32_t&>(product);
    } else {
        const __nv_bfloat162 by = __bfloat162bfloat162(__ushort_as_bfloat16(0x7f00));  // 2^127
        const __nv_bfloat162 product = __hmul2(reinterpret_cast<const __nv_bfloat162&>(bits), by);
        pair = reinterpret_cast<const uint32_t&>(product);
    }
}

// The quants of values [at + own, at + own + 4) of a block as two pairs of X, exactly; `at` is a
// multiple of 16.
template <class X, class Block>
__device__ void load_pairs(const uint8_t* block, int at, int own, uint32_t (&pairs)[2]) {
    if constexpr (requires { Block::kHalvesOfE2m1; }) {
        const uint8_t* bytes = block + Block::kBytes - Block::kValues / 2 + own;
        for (int i = 0; i < 2; ++i) {
            const uint32_t spread = bytes[2 * i] | bytes[2 * i + 1] << 16;
            if (at < Block::kGroup) {
                e2m1_to_pair<X, 0>(spread, pairs[i]);
            } else {
                e2m1_to_pair<X, 4>(spread, pairs[i]);
            }
        }
    } else {
        quants_to_pairs<X, Block>(load_quad<Block>(block, at + own), pairs);
    }
}

// sums (16, 8 NT) += the weights' chunk x^T. Lane 4 g + t reads the chunks of outputs g and g + 8,
// and of row g of x values 4 t to 4 t + 3 of each 16, from the chunk's first column on.
template <class X, class Block, int NT>
__device__ void multiply_chunk(float (&sums)[NT][4], const uint8_t* low, const uint8_t* high,
                               const X* const (&xs)[NT], int columns) {
    const ChunkScales<Block> low_scales(low), high_scales(high);
    constexpr uint32_t kOnes = std::is_same_v<X, __half> ? 0x3c003c00 : 0x3f803f80;  // two
    const int own = threadIdx.x % 4 * 4;
    // The values from `at` on that share a scale.
    const auto multiply = [&](int at) {
        const int in_block = at % Block::kValues, first = at / Block::kValues * Block::kBytes;
        float products[NT][4] = {}, inputs[NT][4] = {};
#pragma unroll
        for (int step = 0; step < Block::kShared; step += 16) {
            uint32_t a[2][2];
            load_pairs<X, Block>(low + first, in_block + step, own, a[0]);
            load_pairs<X, Block>(high + first, in_block + step, own, a[1]);
#pragma unroll
            for (int j = 0; j < NT; ++j) {
                const uint2 x = *reinterpret_cast<const uint2*>(xs[j] + at + step + own);
                mma(X{}, products[j], a[0][0], a[1][0], a[0][1], a[1][1], x.x, x.y);
                if (Block::kHasMin) mma(X{}, inputs[j], kOnes, kOnes, kOnes, kOnes, x.x, x.y);
            }
        }
        const float scales[2] = {low_scales.scale(at), high_scales.scale(at)};
        const float mins[2] = {low_scales.min(at), high_scales.min(at)};
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (int v = 0; v < 4; ++v) {
                sums[j][v] = fmaf(scales[v / 2], products[j][v], sums[j][v]);
                if (Block::kHasMin) sums[j][v] = fmaf(mins[v / 2], inputs[j][v], sums[j][v]);
            }
    };
    constexpr int kColumns = ChunkShape<Block>::kColumns;
    if (Block::kValues < kColumns && columns < kColumns) {
#pragma unroll 1
        for (int at = 0; at < columns; at += Block::kShared) multiply(at);
        return;
    }
#pragma unroll
    for (int at = 0; at < kColumns; at += Block::kShared) multiply(at);
}

}  // namespace hark::cuda
