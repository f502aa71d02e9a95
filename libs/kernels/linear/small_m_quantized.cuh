// Products of quantised weights of few rows, directly from the blocks and on the matrix units. For
// many rows gemm.cu converts the weights.
//
// A warp multiplies 16 rows of w by up to 32 rows of x. It takes a slice of the columns, in chunks,
// and the block adds the slices in order, so a row's bits do not depend on other rows. Chunks
// go to shared memory as stored. There the quants, which 16-bit types hold exactly, become operands
// of mma.m16n8k16, and the sums of values that share a scale are multiplied by it in f32. Minima
// are multiplied by the sum of x over these values, which is a product with ones.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/cuda/hopper.cuh"
#include "kernels/elementwise/rows.cuh"
#include "kernels/linear/small_m_mma.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {

constexpr int kGroupRows = 16;          // of w, multiplied by a warp
constexpr int kPitch = kGroupRows + 4;  // of a row's sums in shared memory

// A chunk of a row in shared memory, at the same place between multiples of 32 bytes as in memory:
// a GPU reads whole sectors of 32 bytes.
template <class Block>
struct ChunkShape {
    static constexpr int kColumns = Block::kValues == 256 ? 256 : 128;
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

// Starts to copy a chunk of 16 rows to a stage, eight lanes per row: 128 bytes of each of four rows
// at once. from: the chunk in a group's first row; upper: from its first row to row 8, in bytes;
// count: of the first and of the last eight rows, those that exist.
template <class Block>
__device__ void start_copy(uint32_t stage, const uint8_t* from, int64_t stride, int64_t upper,
                           const int (&count)[2], int bytes) {
    using Shape = ChunkShape<Block>;
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
        if constexpr (kDivided) return of_lane(scales_, at);
        return Block::scale(block(at), 0);
    }
    __device__ float min(int at) const {
        if constexpr (kDivided) return of_lane(mins_, at);
        return Block::min(block(at), 0);
    }

  private:
    static constexpr bool kDivided = Block::kValues > Block::kShared;
    static constexpr int kMine = kDivided ? Block::kValues / Block::kShared / 4 : 1;

    __device__ const uint8_t* block(int at) const {
        return chunk_ + at / Block::kValues * Block::kBytes;
    }
    static __device__ float of_lane(const float (&values)[kMine], int at) {
        const int i = at / Block::kShared;
        return __shfl_sync(0xffffffff, values[i / 4],
                           static_cast<int>(threadIdx.x % 32 & 28) | i % 4);
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

// How a product is divided among warps.
struct Division {
    int slices;                   // warps of a block
    int stages;                   // chunks in flight per warp: 1 or 2
    int together;                 // groups after which the block meets: 1 or 2
    int slice_bytes, sums_bytes;  // of shared memory: a slice's chunks; all slices' sums of a group
};

// The groups of 16 rows of w. Rows 8 to 15 of a gated product's group are the second factors of its
// rows 0 to 7.
struct Groups {
    int n, outputs;         // y's columns; those of a group
    int64_t stride, upper;  // of w in bytes; from a group's first row to its row 8

    // up: from the first factors' rows to those of the second ones; 0: not gated
    __device__ Groups(const SmallMArgs& args, int64_t stride, int64_t up)
        : n(static_cast<int>(args.n)),
          outputs(up != 0 ? kGroupRows / 2 : kGroupRows),
          stride(stride),
          upper(up != 0 ? up : 8 * stride) {}
    __device__ bool gated() const { return outputs < kGroupRows; }
    __device__ int count() const { return (n + outputs - 1) / outputs; }
    // From w to the group's first row, in bytes.
    __device__ int64_t first(int group) const { return group * outputs * stride; }
    // Of eight rows from the first one or from row 8 on, those that exist.
    __device__ int rows(int group, int half) const {
        return n - group * outputs - (gated() ? 0 : 8 * half);
    }
};

// Writes y of one group from the sums of its slices, by the 16 lanes of a row.
template <class Tile>
__device__ void finish_row(const SmallMArgs& args, const Division& division, const Groups& groups,
                           const float* sums, const Tile& tile, int row, int group) {
    const int lane = threadIdx.x % kGroupRows, n = group * groups.outputs + lane;
    if (lane >= groups.outputs || n >= groups.n) return;
    const int64_t place = int64_t{tile.to(row)} * args.n + n;
    const float residual = residual_at(args, place);
    const auto value_of = [&](int row_of_group, const EpilogueParams& params) {
        float sum = 0;
        for (int s = 0; s < division.slices; ++s)
            sum = __fadd_rn(sum, sums[(s * tile.rows + row) * kPitch + row_of_group]);
        return apply_epilogue(args, params, sum, residual);
    };
    float value = value_of(lane, tile.params(args, n));
    if (groups.gated())
        value = gated_value(args, value, value_of(lane + 8, tile.up_params(args, n)));
    store_any(args.y, args.y_type, place, value);
}

// y for a group of 16 rows of w after the other, and NT tiles of 8 rows of x. Warp s sums slice s.
// The block meets after one group or two. Some warps, in turn, finish them; the others continue.
template <class X, class Block, int NT, class Tiles>
__global__ void __launch_bounds__(32 * kMostSlices, NT == 1 ? 2 : 1)
    quantized_kernel(SmallMArgs args, Division division, Tiles tiles, const X* x,
                     const uint8_t* __restrict__ w, int64_t stride) {
    using Shape = ChunkShape<Block>;
    constexpr int kRows = 8 * NT;
    // [slices][stages][kStage], [2 together][slices][rows][kPitch]
    extern __shared__ __align__(16) uint8_t memory[];
    let_next_start();
    const int slice = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    if (Tiles::kChosen) wait_for_previous();
    const auto tile = tiles.tile(args, blockIdx.x, kRows);
    if (tile.rows <= 0) return;
    if (tile.weights < 0) return write_nan(args, tile);
    w += tile.weights;
    const Groups groups(args, stride, tiles.up(args, stride));
    const int k = static_cast<int>(args.k), rows = tile.rows, count = groups.count();
    const auto slice_begin = [&](int s) { return s * args.units / division.slices; };
    const int begin = slice_begin(slice), end = slice_begin(slice + 1);
    const uint8_t* stages = memory + slice * division.slice_bytes;
    const auto copied = static_cast<uint32_t>(__cvta_generic_to_shared(stages));
    int next_group = blockIdx.y, next_chunk = begin;
    const auto start_next = [&](int stage) {
        if (next_group < count) {
            const int at = next_chunk * Shape::kBytes;
            start_copy<Block>(copied + stage * Shape::kStage, w + groups.first(next_group) + at,
                              stride, groups.upper,
                              {groups.rows(next_group, 0), groups.rows(next_group, 1)},
                              min(static_cast<int>(stride) - at, Shape::kBytes));
        }
        __pipeline_commit();
        if (++next_chunk < end) return;
        next_chunk = begin;
        next_group += gridDim.y;
    };
#pragma unroll 1
    for (int i = 0; i < division.stages; ++i) start_next(i);
    if (!Tiles::kChosen) wait_for_previous();
    const X* xs[NT];
    for (int j = 0; j < NT; ++j) xs[j] = x + int64_t{tile.from(min(8 * j + g, rows - 1))} * k;
    auto* all_sums = reinterpret_cast<float*>(memory + division.slices * division.slice_bytes);
    const auto sums_of = [&](int round) {
        return all_sums + (round & (2 * division.together - 1)) *
                              (division.sums_bytes / static_cast<int>(sizeof(float)));
    };
    int stage = 0, round = 0;
#pragma unroll 1
    for (int group = blockIdx.y; group < count; group += gridDim.y, ++round) {
        const auto rows_begin = reinterpret_cast<uintptr_t>(w + groups.first(group) + g * stride);
        float sums[NT][4] = {};
#pragma unroll 1
        for (int chunk = begin; chunk < end; ++chunk) {
            if (division.stages == 1)
                __pipeline_wait_prior(0);
            else
                __pipeline_wait_prior(1);
            __syncwarp();
            const X* inputs[NT];
            for (int j = 0; j < NT; ++j) inputs[j] = xs[j] + chunk * Shape::kColumns;
            const uint8_t* from = stages + stage * Shape::kStage + g * Shape::kPitch;
            const auto low = static_cast<uint32_t>(rows_begin + chunk * Shape::kBytes);
            const auto high = low + static_cast<uint32_t>(groups.upper);
            multiply_chunk<X, Block>(sums, from + low % 32, from + 8 * Shape::kPitch + high % 32,
                                     inputs, min(Shape::kColumns, k - chunk * Shape::kColumns));
            __syncwarp();
            start_next(stage);
            if (++stage == division.stages) stage = 0;
        }
        float* of_group = sums_of(round);
#pragma unroll
        for (int j = 0; j < NT; ++j)
#pragma unroll
            for (int v = 0; v < 4; ++v) {
                const int row = 8 * j + 2 * t + v % 2;
                if (row < rows)
                    of_group[(slice * rows + row) * kPitch + 8 * (v / 2) + g] = sums[j][v];
            }
        const int next = group + gridDim.y;
        const bool first_of_two = division.together == 2 && round % 2 == 0;
        if (first_of_two && next < count) continue;
        __syncthreads();
        // Half a warp per row and group; another warp begins each time.
        const int half =
            (slice + round / division.together) % division.slices * 2 + threadIdx.x % 32 / 16;
        const int finished = division.together == 1 || first_of_two ? 1 : 2;
        for (int i = half; i < finished * rows; i += 2 * division.slices) {
            const int back = i % finished;
            finish_row(args, division, groups, sums_of(round - back), tile, i / finished,
                       group - back * static_cast<int>(gridDim.y));
        }
    }
}

// Returns false, and does nothing, where the shared memory is too small.
template <class Block, int NT, class Tiles, class X>
bool launch_quantized(Context& ctx, SmallMArgs args, const Tiles& tiles, int64_t row_tiles,
                      const X* x, const uint8_t* w, int64_t stride, int stages, int together) {
    using Shape = ChunkShape<Block>;
    args.units = static_cast<int>(ceil_div(args.k, Shape::kColumns));
    Division division{};
    // As few as give the longest one the same length.
    division.slices =
        static_cast<int>(ceil_div(args.units, ceil_div(args.units, int64_t{kMostSlices})));
    division.stages = stages;
    division.together = together;
    division.slice_bytes = Shape::kStage * stages;
    const int rows = static_cast<int>(std::min<int64_t>(args.rows, 8 * NT));
    division.sums_bytes = division.slices * rows * kPitch * static_cast<int>(sizeof(float));
    const int shared = division.slices * division.slice_bytes + 2 * together * division.sums_bytes;
    const int limit = shared_limit();
    if (shared > limit) return false;
    const auto kernel = quantized_kernel<X, Block, NT, Tiles>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    const int threads = 32 * division.slices;
    int resident = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads,
                                                             static_cast<size_t>(shared)));
    const int64_t group_count = ceil_div(args.n, args.up > 0 ? kGroupRows / 2 : kGroupRows);
    const int64_t wanted = ceil_div(int64_t{std::max(resident, 1)} * multiprocessors(), row_tiles);
    const dim3 blocks(static_cast<unsigned>(row_tiles),
                      static_cast<unsigned>(std::min(group_count, wanted)));
    launch_early(ctx, kernel, blocks, threads, static_cast<size_t>(shared), args, division, tiles,
                 x, w, stride);
    return true;
}

// y for tiles of up to 8 NT rows, of which there are `row_tiles`, by the first division that fits
// the GPU. The choices do not change a row's bits.
template <class Block, int NT, class Tiles, class X>
bool launch_quantized(Context& ctx, const SmallMArgs& args, const Tiles& tiles, int64_t row_tiles,
                      const X* x, const uint8_t* w, int64_t stride) {
    const auto launch = [&](int stages, int together) {
        return launch_quantized<Block, NT>(ctx, args, tiles, row_tiles, x, w, stride, stages,
                                           together);
    };
    if (NT > 1) return launch(1, 1);
    if (launch(2, 2) || launch(2, 1) || launch(1, 1)) return true;
    fail("a block of this GPU has ", shared_limit(),
         " bytes of shared memory; quantised weights need 90112");
}

}  // namespace hark::cuda
