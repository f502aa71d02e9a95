#include <cuda_pipeline.h>

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {
namespace {

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

    __device__ UnitCopy(const T* all, int64_t first_row, int64_t count, int64_t k)
        : first(all + first_row * k),
          column(threadIdx.x % kChunks * kValues),
          k(static_cast<int>(k)) {
        const int row = threadIdx.x / kChunks;
        const int rows = static_cast<int>(min(int64_t{Rows}, count - first_row));
        to = place<W, kChunks>(row, threadIdx.x % kChunks);
#pragma unroll
        for (int i = 0; i < kCopies; ++i)
            offsets[i] = (row + i * kRowStep) % rows * this->k;  // not all the same: that is slower
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

template <class X, class W, class T>
__global__ void __launch_bounds__(T::kThreads, 2)
    tiled_kernel(SmallMArgs args, const X* x, const W* __restrict__ w) {
    let_next_start();
    constexpr int MT = T::kOutputTiles, NT = T::kRowTiles;
    constexpr int kWeightChunks = kUnit * sizeof(W) / 16;
    constexpr int kStageChunks = kUnit * (T::kOutputs * sizeof(W) + T::kRows * 2) / 16;
    extern __shared__ uint4 shared[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // Blocks of the same outputs run at about the same time: their weights are read from memory
    // once.
    const int64_t n0 = int64_t{blockIdx.y} * T::kOutputs, row0 = int64_t{blockIdx.x} * T::kRows;
    const int first_n = warp / T::kWarpsOfRows * 16 * MT,
              first_row = warp % T::kWarpsOfRows * 8 * NT;
    UnitCopy<W, W, T::kOutputs, T::kThreads, false> weights_copy(w, n0, args.n, args.k);
    UnitCopy<W, X, T::kRows, T::kThreads, true> x_copy(x, row0, args.rows, args.k);
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
    wait_for_previous();
    for (int unit = 0; unit < T::kStages - 1; ++unit) {
        if (unit < args.units)
            x_copy.start(shared + unit * kStageChunks + T::kOutputs * kWeightChunks);
        __pipeline_commit();  // the first one has all the weights
    }
    // A thread finishes sums of one output.
    const int n = threadIdx.x % T::kOutputs;
    const EpilogueParams column = epilogue_params(args, n0 + n);
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
    const int64_t y0 = row0 * args.n + n0 + n;
    const int row_end = static_cast<int>(min(int64_t{T::kRows}, args.rows - row0));
    constexpr int kStep = T::kThreads / T::kOutputs, kRest = T::kRows / kStep;
    constexpr int kAtOnce = kRest < 8 ? kRest : 8;
    for (int first = threadIdx.x / T::kOutputs; first < row_end; first += kStep * kAtOnce) {
        float residuals[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
            if (const int row = first + i * kStep; row < row_end)
                residuals[i] = residual_at(args, y0 + row * args.n);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
            if (const int row = first + i * kStep; row < row_end)
                store_any(args.y, args.y_type, y0 + row * args.n,
                          apply_epilogue(args, column, rows[row * T::kPitch + n], residuals[i]));
    }
}

template <class Wide, class Int8>
void launch_mma_tiled(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w) {
    with_small_m_types(x.dtype, w.dtype, [&](auto x_value, auto w_value) {
        using X = decltype(x_value);
        using W = decltype(w_value);
        using T = std::conditional_t<sizeof(W) == 1, Int8, Wide>;
        const dim3 blocks(static_cast<unsigned>(ceil_div(args.rows, T::kRows)),
                          static_cast<unsigned>(ceil_div(args.n, T::kOutputs)));
        const auto kernel = tiled_kernel<X, W, T>;
        const size_t shared = T::shared_bytes(sizeof(W));
        CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
        launch_early(ctx, kernel, blocks, T::kThreads, shared, args, static_cast<const X*>(x.data),
                     static_cast<const W*>(w.data));
    });
}

}  // namespace

void tiled_product(Context& ctx, const SmallMArgs& args, Tensor x, Tensor w, Tile tile) {
    using Small = Tiling<1, 2, 2, 2, 6>;
    using Large = Tiling<2, 4, 4, 2, 4>;
    // Fewer warps that share an output convert int8 less often.
    if (tile == Tile::k32x32) return launch_mma_tiled<Small, Small>(ctx, args, x, w);
    if (tile == Tile::k64x64)
        return launch_mma_tiled<Tiling<2, 2, 2, 4, 5>, Tiling<2, 4, 2, 2, 5>>(ctx, args, x, w);
    launch_mma_tiled<Large, Large>(ctx, args, x, w);
}

}  // namespace hark::cuda
