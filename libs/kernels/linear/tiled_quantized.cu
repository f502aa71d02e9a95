// Products of quantised weights and more rows than a warp of small_m_quantized.cuh takes: tiles of
// 128 outputs and up to 64 rows, whose x is in shared memory for all warps. Quants become operands
// of mma.m16n8k16 exactly, and sums of values that share a scale are multiplied by it in f32, as in
// quantized_chunk.cuh. Sums of x, for the minima, are made once per block.
#include <cuda_pipeline.h>

#include "kernels/cuda/hopper.cuh"
#include "kernels/linear/quantized_chunk.cuh"
#include "kernels/linear/quantized_parts.cuh"

namespace hark::cuda {
namespace {

constexpr int kTileWarps = 8, kTileThreads = 32 * kTileWarps;
constexpr int kTileOutputs = kGroupRows * kTileWarps;
constexpr int kStripColumns = 128;  // of x in shared memory at once
// 16 columns of a row are read by four lanes, 8 bytes each: eight rows of this pitch hit all banks.
constexpr int kStripPitch = kStripColumns + 16;

// Rows of x, a strip of columns, and its sums over the columns that share a scale.
template <class Block, int NT>
struct Strip {
    static constexpr int kRows = 8 * NT, kShares = kStripColumns / Block::kShared;
    __half x[2][kRows][kStripPitch];  // one is multiplied while the next one arrives
    float sums[Block::kHasMin ? kShares : 1][Block::kHasMin ? kRows : 1];

    // Starts to copy columns [first, first + kStripColumns) of the rows from `from` on; those from
    // k on are not copied.
    __device__ void start(int buffer, const __half* from, int rows, int k, int first) {
        constexpr int kChunk = 8, kChunks = kStripColumns / kChunk;
        for (int i = threadIdx.x; i < kRows * kChunks; i += kTileThreads) {
            const int row = i / kChunks, c = i % kChunks * kChunk;
            if (row < rows && first + c < k)
                __pipeline_memcpy_async(&x[buffer][row][c], from + int64_t{row} * k + first + c,
                                        16);
        }
    }
    __device__ void add_up(int buffer) {
        for (int i = threadIdx.x; i < kRows * kShares; i += kTileThreads) {
            const int row = i / kShares, share = i % kShares;
            float sum = 0;
            for (int c = 0; c < Block::kShared; c += 8) {
                const auto pack = load_pack<8>(&x[buffer][row][share * Block::kShared + c]);
                for (int v = 0; v < 8; ++v) sum += to_f32(pack.values[v]);
            }
            sums[share][row] = sum;
        }
    }
};

template <class Block, int NT>
struct TileMemory {
    using Shape = ChunkShape<Block>;
    Strip<Block, NT> strip;
    __align__(16) uint8_t weights[2][kTileWarps][Shape::kStage];
};

// sums (16, 8 NT) += the weights' columns from `at` of a chunk on that share a scale, times those
// of the strip from `column` on.
template <class Block, int NT>
__device__ void multiply_share(float (&sums)[NT][4], const Strip<Block, NT>& strip, int buffer,
                               const uint8_t* low, const uint8_t* high,
                               const ChunkScales<Block>& low_scales,
                               const ChunkScales<Block>& high_scales, int at, int column) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int in_block = at % Block::kValues, first = at / Block::kValues * Block::kBytes;
    float products[NT][4] = {};
#pragma unroll
    for (int step = 0; step < Block::kShared; step += 16) {
        uint32_t a[2][2];
        load_pairs<__half, Block>(low + first, in_block + step, 4 * t, a[0]);
        load_pairs<__half, Block>(high + first, in_block + step, 4 * t, a[1]);
#pragma unroll
        for (int j = 0; j < NT; ++j) {
            const uint2 x =
                *reinterpret_cast<const uint2*>(&strip.x[buffer][8 * j + g][column + step + 4 * t]);
            mma(__half{}, products[j], a[0][0], a[1][0], a[0][1], a[1][1], x.x, x.y);
        }
    }
    const float scales[2] = {low_scales.scale(at), high_scales.scale(at)};
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
        for (int v = 0; v < 4; ++v) sums[j][v] = fmaf(scales[v / 2], products[j][v], sums[j][v]);
    if constexpr (Block::kHasMin) {
        const float mins[2] = {low_scales.min(at), high_scales.min(at)};
        const float* xs = strip.sums[column / Block::kShared];
#pragma unroll
        for (int j = 0; j < NT; ++j) {
            const float2 two = *reinterpret_cast<const float2*>(xs + 8 * j + 2 * t);
#pragma unroll
            for (int v = 0; v < 4; ++v)
                sums[j][v] = fmaf(mins[v / 2], v % 2 == 0 ? two.x : two.y, sums[j][v]);
        }
    }
}

// Block (tile of rows, tile of outputs, split of the columns): its part of the sums, of parts
// (splits, T, N). stride: of w, in bytes.
template <class Block, int NT>
__global__ void __launch_bounds__(kTileThreads, 2)
    quantized_tile_kernel(SmallMArgs args, float* parts, const __half* x,
                          const uint8_t* __restrict__ w, int64_t stride) {
    using Shape = ChunkShape<Block>;
    constexpr int kStrips = Shape::kColumns / kStripColumns;  // of a chunk
    pdl_trigger();
    extern __shared__ __align__(16) uint8_t memory[];
    auto& shared = *reinterpret_cast<TileMemory<Block, NT>*>(memory);
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int n_size = static_cast<int>(args.n), k = static_cast<int>(args.k);
    const int first_row = blockIdx.x * 8 * NT;
    const int rows = min(static_cast<int>(args.rows) - first_row, 8 * NT);
    const int first_n = blockIdx.y * kTileOutputs + warp * kGroupRows;
    const int chunks = (k + Shape::kColumns - 1) / Shape::kColumns;
    const auto split_begin = [&](unsigned split) {
        return static_cast<int>(int64_t{split} * chunks / gridDim.z);
    };
    const int begin = split_begin(blockIdx.z), end = split_begin(blockIdx.z + 1);
    const uint8_t* own = w + first_n * stride;
    x += int64_t{first_row} * k;
    const auto start_weights = [&](int chunk) {
        const int at = chunk * Shape::kBytes;
        const auto to =
            static_cast<uint32_t>(__cvta_generic_to_shared(shared.weights[chunk % 2][warp]));
        start_copy<Shape>(to, own + at, stride, 8 * stride,
                          {n_size - first_n, n_size - first_n - 8},
                          min(static_cast<int>(stride) - at, Shape::kBytes));
    };
    const auto start_strip = [&](int chunk, int strip) {
        shared.strip.start(strip % 2, x, rows, k,
                           chunk * Shape::kColumns + strip % kStrips * kStripColumns);
    };
    start_weights(begin);
    pdl_wait();
    start_strip(begin, begin * kStrips);
    __pipeline_commit();
    float sums[NT][4] = {};
#pragma unroll 1
    for (int chunk = begin; chunk < end; ++chunk) {
        const uint8_t* stage = shared.weights[chunk % 2][warp] + g * Shape::kPitch;
        const auto low_phase = reinterpret_cast<uintptr_t>(own + chunk * Shape::kBytes) +
                               static_cast<uintptr_t>(g * stride);
        const uint8_t* low = stage + low_phase % 32;
        const uint8_t* high =
            stage + 8 * Shape::kPitch + (low_phase + static_cast<uintptr_t>(8 * stride)) % 32;
        const int columns = min(Shape::kColumns, k - chunk * Shape::kColumns);
        const auto arrive = [&](int in_chunk) {
            const int strip = chunk * kStrips + in_chunk;
            __pipeline_wait_prior(0);
            __syncthreads();  // all have read the previous strip
            if (in_chunk + 1 < kStrips) {
                start_strip(chunk, strip + 1);
            } else if (chunk + 1 < end) {
                start_weights(chunk + 1);
                start_strip(chunk + 1, strip + 1);
            }
            __pipeline_commit();
            if constexpr (Block::kHasMin) {
                shared.strip.add_up(strip % 2);
                __syncthreads();
            }
            return strip % 2;
        };
        int buffer = arrive(0);
        const ChunkScales<Block> low_scales(low), high_scales(high);
#pragma unroll
        for (int in_chunk = 0; in_chunk < kStrips; ++in_chunk) {
            if (in_chunk > 0) buffer = arrive(in_chunk);
#pragma unroll
            for (int column = 0; column < kStripColumns; column += Block::kShared) {
                const int at = in_chunk * kStripColumns + column;
                if (at < columns)
                    multiply_share(sums, shared.strip, buffer, low, high, low_scales, high_scales,
                                   at, column);
            }
        }
    }
    float* part = parts + (int64_t{blockIdx.z} * args.rows + first_row) * args.n;
#pragma unroll
    for (int j = 0; j < NT; ++j)
#pragma unroll
        for (int v = 0; v < 4; ++v) {
            const int row = 8 * j + 2 * t + v % 2, n = first_n + 8 * (v / 2) + g;
            if (row < rows && n < n_size) part[row * args.n + n] = sums[j][v];
        }
}

template <class Block, int NT>
void launch_tiles(Context& ctx, const SmallMArgs& args, const __half* x, const uint8_t* w) {
    const auto kernel = quantized_tile_kernel<Block, NT>;
    constexpr int kBytes = sizeof(TileMemory<Block, NT>);
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    const int64_t row_tiles = ceil_div(args.rows, 8 * NT), tiles = ceil_div(args.n, kTileOutputs);
    const int64_t chunks = ceil_div(args.k, ChunkShape<Block>::kColumns);
    // As many as fill the GPU with two blocks per multiprocessor.
    const int64_t splits =
        std::clamp<int64_t>(2 * multiprocessors() / (row_tiles * tiles), 1, chunks);
    float* parts = ctx.arena.tensor(Dtype::f32, {splits, args.rows, args.n}).as<float>();
    const int64_t stride = args.k / Block::kValues * Block::kBytes;
    const dim3 grid(static_cast<unsigned>(row_tiles), static_cast<unsigned>(tiles),
                    static_cast<unsigned>(splits));
    pdl_launch(ctx, kernel, grid, kTileThreads, kBytes, args, parts, x, w, stride);
    TileParts division(args, kTileOutputs, 8 * NT, splits);
    division.per_block = 1;
    add_parts(ctx, args, division, parts);
}

}  // namespace

void tiled_quantized(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then) {
    check_half("linear", x);
    const Arena::Scope scope(ctx.arena);
    const SmallMArgs args(y, x, w, then);
    with_block_type(w.values.dtype, [&](auto block) {
        using Block = decltype(block);
        const auto* xs = static_cast<const __half*>(x.data);
        const auto* ws = static_cast<const uint8_t*>(w.values.data);
        if (args.rows <= 16) return launch_tiles<Block, 2>(ctx, args, xs, ws);
        const bool narrow = args.rows <= 32 || int{sizeof(TileMemory<Block, 8>)} > shared_limit();
        if (narrow) return launch_tiles<Block, 4>(ctx, args, xs, ws);
        launch_tiles<Block, 8>(ctx, args, xs, ws);
    });
}

}  // namespace hark::cuda
