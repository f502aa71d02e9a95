// tiled_kernel of small_m_mma.cuh.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

// A block of WM x WN warps, each with MT tiles of 16 outputs and NT tiles of 8 rows. `Stages` units
// of both operands are in shared memory, all but one of them in flight. At most 96 KiB, the limit
// of a block on every GPU from compute capability 8.0.
template <int MT, int NT, int WM, int WN, int Stages>
struct Tiling {
    static constexpr int kOutputTiles = MT, kRowTiles = NT, kWarpsOfRows = WN, kStages = Stages;
    static constexpr int kThreads = 32 * WM * WN;
    static constexpr int kOutputs = 16 * MT * WM, kRows = 8 * NT * WN;
    static constexpr int kPitch = kOutputs + 4;  // of the sums; a warp's stores hit all banks

    static constexpr size_t shared_bytes(size_t weight) {
        return std::max(Stages * kUnit * (kOutputs * weight + kRows * 2),
                        sizeof(float) * kRows * kPitch);
    }
    static_assert(shared_bytes(2) <= 96 << 10);
};

// Place of chunk `chunk` (16 bytes) in a row of `Chunks` chunks. Rows of 128 bytes, of which each
// of 4 lanes reads chunk_of<W>, are shifted so that two rows' chunks hit different banks.
template <class W, int Chunks>
__device__ inline int place(int row, int chunk) {
    constexpr int kShift = Chunks < 8 ? 0 : sizeof(W) == 1 ? 1 : 4;
    return row * Chunks + (chunk ^ (row % 2 * kShift));
}

// Copies `Rows` rows of one operand, one unit at a time; a thread copies the same chunk of several
// rows. Past the last row it copies any row: the results are not written. Past the last column:
// zeros of x and any weights.
template <class W, class T, int Rows, int Threads, bool Zeros>
struct UnitCopy {
    static constexpr int kValues = 16 / sizeof(T), kChunks = kUnit / kValues;
    static constexpr int kRowStep = Threads / kChunks;
    static constexpr int kCopies = Rows / kRowStep;
    static_assert(kRowStep % 2 == 0 && Rows % kRowStep == 0);

    const T* first;
    int offsets[kCopies];  // one per row of the thread
    int column, k, to;

    // Row i of the operand is row row_of(i) of `first`.
    template <class RowOf>
    __device__ UnitCopy(const T* first, int rows, int64_t k, const RowOf& row_of)
        : first(first), column(threadIdx.x % kChunks * kValues), k(static_cast<int>(k)) {
        const int row = threadIdx.x / kChunks;
        to = place<W, kChunks>(row, threadIdx.x % kChunks);
#pragma unroll
        for (int i = 0; i < kCopies; ++i)  // not all the same past the last row: that is slower
            offsets[i] = row_of((row + i * kRowStep) % rows) * this->k;
    }

    __device__ void start(uint4* stage) {
        const bool there = column < k;
        const T* from = first + (there ? column : 0);
#pragma unroll
        for (int i = 0; i < kCopies; ++i)
            __pipeline_memcpy_async(stage + to + i * kRowStep * kChunks, from + offsets[i], 16,
                                    !Zeros || there ? 0 : 16);
        column += kUnit;
    }
};

// y for a tile of outputs and one of `tiles`, of T's sizes.
template <class X, class W, class T, class Tiles>
__global__ void __launch_bounds__(T::kThreads, 2)
    tiled_kernel(SmallMArgs args, Tiles tiles, const X* x, const W* w) {
    pdl_trigger();
    if (Tiles::kChosen) pdl_wait();
    const auto tile = tiles.tile(args, blockIdx.x, T::kRows);
    if (tile.rows <= 0) return;
    if (tile.weights < 0) return write_nan(args, tile);
    constexpr int MT = T::kOutputTiles, NT = T::kRowTiles;
    constexpr int kWeightChunks = kUnit * sizeof(W) / 16;
    constexpr int kStageChunks = kUnit * (T::kOutputs * sizeof(W) + T::kRows * 2) / 16;
    extern __shared__ uint4 shared[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // Blocks of the same outputs run at about the same time: their weights are read from memory
    // once.
    const int64_t n0 = int64_t{blockIdx.y} * T::kOutputs;
    const int first_n = warp / T::kWarpsOfRows * 16 * MT,
              first_row = warp % T::kWarpsOfRows * 8 * NT;
    UnitCopy<W, W, T::kOutputs, T::kThreads, false> weights_copy(
        w + tile.weights / static_cast<int64_t>(sizeof(W)) + n0 * args.k,
        static_cast<int>(min(int64_t{T::kOutputs}, args.n - n0)), args.k, [](int i) { return i; });
    // Rows of x may be far apart: their offsets count from the tile's first one.
    const int64_t x0 = tile.from(0);
    UnitCopy<W, X, T::kRows, T::kThreads, true> x_copy(
        x + x0 * args.k, tile.rows, args.k,
        [&](int i) { return static_cast<int>(tile.from(i) - x0); });
    const auto start = [&](int unit, uint4* stage) {
        if (unit < args.units) {
            weights_copy.start(stage);
            x_copy.start(stage + T::kOutputs * kWeightChunks);
        }
        __pipeline_commit();  // empty past the end: keeps the count of groups in flight
    };
    int w_at[2], x_at[2];  // of both halves of the lane's first row
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        w_at[half] = place<W, kWeightChunks>(first_n + g, sizeof(W) == 1 ? t : 4 * half + t);
        x_at[half] = T::kOutputs * kWeightChunks + place<W, 8>(first_row + g, chunk_of<W>(t, half));
    }
    float totals[MT][NT][4] = {}, sums[MT][NT][4] = {};
    for (int unit = 0; unit < T::kStages - 1; ++unit)
        if (unit < args.units) weights_copy.start(shared + unit * kStageChunks);
    if (!Tiles::kChosen) pdl_wait();
    for (int unit = 0; unit < T::kStages - 1; ++unit) {
        if (unit < args.units)
            x_copy.start(shared + unit * kStageChunks + T::kOutputs * kWeightChunks);
        __pipeline_commit();  // the first one has all the weights
    }
    // A thread finishes sums of one output.
    const int n = threadIdx.x % T::kOutputs;
    const EpilogueParams column = tile.params(args, static_cast<int>(n0) + n);
    // slice_begin of the next slice without a division: the whole part and the remainder.
    const int whole = args.units / args.slices, part = args.units % args.slices;
    int end = whole, left = part, now = 0, next = T::kStages - 1;
    for (int unit = 0; unit < args.units; ++unit) {
        __pipeline_wait_prior(T::kStages - 2);
        __syncthreads();  // the unit has arrived, and all have read the previous one
        const uint4* stage = shared + now * kStageChunks;
        uint4 ws[MT][2], xs[NT];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            Half w_half[MT][2], x_half[NT];
#pragma unroll
            for (int i = 0; i < 2 * MT; ++i)
                if (sizeof(W) == 2 || half == 0)
                    ws[i / 2][i % 2] = stage[w_at[half] + i * 8 * kWeightChunks];
#pragma unroll
            for (int j = 0; j < NT; ++j) xs[j] = stage[x_at[half] + j * 8 * 8];
            if (half == 0) start(unit + T::kStages - 1, shared + next * kStageChunks);
#pragma unroll
            for (int i = 0; i < 2 * MT; ++i)
                w_half[i / 2][i % 2] = weights_half<X, W>(ws[i / 2][i % 2], half);
#pragma unroll
            for (int j = 0; j < NT; ++j) x_half[j] = as_half(xs[j]);
            multiply_halves<X>(sums, w_half, x_half);
        }
        next = now;
        now = now + 1 == T::kStages ? 0 : now + 1;
        if (unit + 1 < end) continue;
        end += whole;
        left += part;
        if (left >= args.slices) {
            left -= args.slices;
            ++end;
        }
#pragma unroll
        for (int i = 0; i < MT * NT * 4; ++i) {
            float& sum = sums[i / (NT * 4)][i / 4 % NT][i % 4];
            float& total = totals[i / (NT * 4)][i / 4 % NT][i % 4];
            total = __fadd_rn(total, sum);
            sum = 0;
        }
    }
    __syncthreads();
    // Through shared memory, so that neighbouring lanes write neighbouring outputs.
    float* rows = reinterpret_cast<float*>(shared);
#pragma unroll
    for (int i = 0; i < MT * NT * 4; ++i) {
        const int tile = i / (NT * 4), j = i / 4 % NT, v = i % 4;
        rows[(first_row + 8 * j + 2 * t + v % 2) * T::kPitch + first_n + 16 * tile + 8 * (v / 2) +
             g] = totals[tile][j][v];
    }
    __syncthreads();
    if (n0 + n >= args.n) return;
    const auto y_at = [&](int row) { return tile.to(row) * args.n + n0 + n; };
    constexpr int kStep = T::kThreads / T::kOutputs, kRest = T::kRows / kStep;
    constexpr int kAtOnce = kRest < 8 ? kRest : 8;
    for (int first = threadIdx.x / T::kOutputs; first < tile.rows; first += kStep * kAtOnce) {
        float residuals[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
            if (const int row = first + i * kStep; row < tile.rows)
                residuals[i] = residual_at(args, y_at(row));
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
            if (const int row = first + i * kStep; row < tile.rows)
                store_any(args.y, args.y_type, y_at(row),
                          apply_epilogue(args, column, rows[row * T::kPitch + n], residuals[i]));
    }
}

// The tiles of outputs and rows. Fewer warps that share an output widen bytes less often.
template <class W>
struct Tilings {
    static constexpr bool kOfBytes = sizeof(W) == 1;
    using Small = Tiling<1, 2, 2, 2, 6>;  // 32 x 32
    using Middle =
        std::conditional_t<kOfBytes, Tiling<2, 4, 2, 2, 5>, Tiling<2, 2, 2, 4, 5>>;  // 64 x 64
    using Large = Tiling<2, 4, 4, 2, 4>;                                             // 128 x 64
};

template <class T, class X, class W, class Tiles>
void launch_tiled(Context& ctx, const SmallMArgs& args, const Tiles& tiles, int64_t row_tiles,
                  const X* x, const W* w) {
    const dim3 blocks(static_cast<unsigned>(row_tiles),
                      static_cast<unsigned>(ceil_div(args.n, T::kOutputs)));
    const auto kernel = tiled_kernel<X, W, T, Tiles>;
    const size_t shared = T::shared_bytes(sizeof(W));
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(shared)));
    pdl_launch(ctx, kernel, blocks, T::kThreads, shared, args, tiles, x, w);
}

}  // namespace hark::cuda
