// Self-attention for training on the matrix units of compute capability 8.0 and later. A block has
// a tile of 64 rows of its own, 16 per warp, and loops over tiles of 64 others.
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/train_attention/self_attention_kernels.cuh"

namespace hark::cuda {
namespace {

using T = __nv_bfloat16;
constexpr int kTile = 64;  // rows per tile and channels per head
constexpr int kTilesThreads = 128;

using Tile = MmaTile<T, kTile, kTile>;

// A warp's 16 rows by 64 columns, as a left operand and as sums, in PTX's layouts of mma.m16n8k16.
using Factor = uint32_t[4][4];
using Sums = float[8][4];

// Starts to copy the rows [first, first + 64), `stride` elements apart; zeros from `end`.
__device__ void start_copy(Tile& to, const T* from, int64_t stride, int first, int end) {
    cuda::start_copy<kTilesThreads>(to, from, stride, first, end, kTile);
}

// Loads this warp's 16 rows of a tile.
__device__ void load_factor(Factor& a, const Tile& tile) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane % 16;
#pragma unroll
    for (int c = 0; c < 4; ++c)
        load_matrices<false>(a[c], &tile.values[row][c * 16 + lane / 16 * 8]);
}

// c += a b^T, by the rows of b
__device__ void multiply_tile_rows(Sums& c, const Factor& a, const Tile& b) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            uint32_t two[4];  // rows 0-7 of 16, both halves of the channels; then rows 8-15
            load_matrices<false>(
                two, &b.values[n * 16 + matrix / 2 * 8 + lane % 8][k * 16 + matrix % 2 * 8]);
            mma(T{}, c[2 * n], a[k], two[0], two[1]);
            mma(T{}, c[2 * n + 1], a[k], two[2], two[3]);
        }
}

// c += a b, over the rows of b
__device__ void multiply_columns(Sums& c, const Factor& a, const Tile& b) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            uint32_t two[4];  // channels 0-7 of 16, both halves of the rows; then channels 8-15
            load_matrices<true>(
                two, &b.values[k * 16 + matrix % 2 * 8 + lane % 8][n * 16 + matrix / 2 * 8]);
            mma(T{}, c[2 * n], a[k], two[0], two[1]);
            mma(T{}, c[2 * n + 1], a[k], two[2], two[3]);
        }
}

// Neighbouring sums are one left operand.
__device__ void round(Factor& a, const Sums& c) {
#pragma unroll
    for (int i = 0; i < 16; ++i)
        a[i / 4][i % 4] = pack(T{}, c[i / 2][i % 2 * 2], c[i / 2][i % 2 * 2 + 1]);
}

// The row and the column in a tile of the warp's sums[n][i].
__device__ int row_of(int i) { return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 * 8; }
__device__ int column_of(int n, int i) { return n * 8 + threadIdx.x % 4 * 2 + i % 2; }

// Writes the warp's rows of the tile at row `first`, each times its factor, up to row `end`.
__device__ void write_rows(T* to, int64_t stride, int first, int end, const Sums& sums,
                           const float (&factors)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = first + row_of(2 * half);
        if (row >= end) continue;
#pragma unroll
        for (int n = 0; n < 8; ++n)
            *reinterpret_cast<uint32_t*>(to + row * stride + column_of(n, 0)) =
                pack(T{}, sums[n][2 * half] * factors[half], sums[n][2 * half + 1] * factors[half]);
    }
}

struct Shared {
    Tile own[2], others[2][2];  // one pair is multiplied while the next one arrives
    float lse2[2][kTile], delta[2][kTile];
};

// Block (tile of queries, head)
__global__ void __launch_bounds__(kTilesThreads)
    forward_kernel(const SelfAttentionArgs args, float scale_log2) {
    extern __shared__ __align__(16) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int h = blockIdx.y, a = blockIdx.x * kTile, end = min(a + kTile, args.rows);
    const int64_t stride = 3 * args.channels();
    const T* qkv = static_cast<const T*>(args.qkv);
    const auto start_others = [&](int tile, int buffer) {
        for (int which = 1; which <= 2; ++which)
            start_copy(shared.others[buffer][which - 1], qkv + args.part(which, 0, h), stride, tile,
                       end);
        __pipeline_commit();
    };
    const int begin = args.first[a] / kTile * kTile, last_first = args.first[end - 1];
    start_copy(shared.own[0], qkv + args.part(0, 0, h), stride, a, end);
    start_others(begin, 0);
    int first[2];
    for (int half = 0; half < 2; ++half)
        first[half] = args.first[min(a + row_of(2 * half), end - 1)];
    Factor q;
    Sums acc = {};
    OnlineSoftmax rows;
    for (int tile = begin, buffer = 0; tile < end; tile += kTile, buffer ^= 1) {
        if (tile + kTile < end) start_others(tile + kTile, buffer ^ 1);
        __pipeline_wait_prior(tile + kTile < end ? 1 : 0);
        __syncthreads();
        if (tile == begin) load_factor(q, shared.own[0]);
        Sums scores = {};
        multiply_tile_rows(scores, q, shared.others[buffer][0]);
        if (tile == a || last_first > tile) {
#pragma unroll
            for (int n = 0; n < 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int key = tile + column_of(n, i);
                    if (key > a + row_of(i) || key < first[i / 2]) scores[n][i] = -INFINITY;
                }
        }
        soften(scores, acc, rows, scale_log2);
        Factor p;
        round(p, scores);
        multiply_columns(acc, p, shared.others[buffer][1]);
        __syncthreads();  // all have read this buffer before the next step's copy overwrites it
    }
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float sum = rows.sums[half];
        for (int step = 1; step <= 2; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        factors[half] = 1 / sum;
        const int row = a + row_of(2 * half);
        if (threadIdx.x % 4 == 0 && row < end)
            args.lse[int64_t{row} * args.heads + h] =
                (rows.largest[half] * scale_log2 + log2f(sum)) * 0.693147180559945309f;
    }
    write_rows(static_cast<T*>(args.out) + args.place(0, h), args.channels(), a, end, acc, factors);
}

// Block (tile of keys or of queries, head). OfKeys: the gradients of its keys and values, from the
// queries that see them and the gradients of their outputs. Otherwise: the gradient of its queries,
// from the keys and values.
template <bool OfKeys>
__global__ void __launch_bounds__(kTilesThreads)
    backward_kernel(const SelfAttentionBackwardArgs args, float scale_log2) {
    extern __shared__ __align__(16) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    const int h = blockIdx.y, own = blockIdx.x * kTile;
    const int64_t stride = 3 * args.channels();
    const T *qkv = static_cast<const T*>(args.qkv), *dout = static_cast<const T*>(args.dout);
    const float *lse2 = args.lse2 + int64_t{h} * args.padded,
                *delta = args.delta + int64_t{h} * args.padded;
    // Queries and the gradients of their outputs, or keys and values.
    const auto start_pair = [&](Tile(&to)[2], bool keys, int tile) {
        start_copy(to[0], qkv + args.part(keys ? 1 : 0, 0, h), stride, tile, args.rows);
        if (keys)
            start_copy(to[1], qkv + args.part(2, 0, h), stride, tile, args.rows);
        else
            start_copy(to[1], dout + args.place(0, h), args.channels(), tile, args.rows);
    };
    const auto start_others = [&](int tile, int buffer) {
        start_pair(shared.others[buffer], !OfKeys, tile);
        if (OfKeys && threadIdx.x < kTile) {
            shared.lse2[buffer][threadIdx.x] = lse2[tile + threadIdx.x];
            shared.delta[buffer][threadIdx.x] = delta[tile + threadIdx.x];
        }
        __pipeline_commit();
    };
    const int last = args.rows - 1;
    const int begin = OfKeys ? own : args.first[own] / kTile * kTile;
    const int end = OfKeys ? args.end[min(own + kTile - 1, last)] : min(own + kTile, args.rows);
    start_pair(shared.own, OfKeys, own);
    start_others(begin, 0);
    float own_lse2[2], own_delta[2];  // of queries
    for (int half = 0; half < 2 && !OfKeys; ++half) {
        own_lse2[half] = lse2[own + row_of(2 * half)];
        own_delta[half] = delta[own + row_of(2 * half)];
    }
    Factor x, y;
    Sums dx = {}, dy = {};
    for (int tile = begin, buffer = 0; tile < end; tile += kTile, buffer ^= 1) {
        if (tile + kTile < end) start_others(tile + kTile, buffer ^ 1);
        __pipeline_wait_prior(tile + kTile < end ? 1 : 0);
        __syncthreads();
        if (tile == begin) {
            load_factor(x, shared.own[0]);
            load_factor(y, shared.own[1]);
        }
        const auto& others = shared.others[buffer];
        Sums p = {}, slopes = {};
        multiply_tile_rows(p, x, others[0]);
        multiply_tile_rows(slopes, y, others[1]);
        const int queries = OfKeys ? tile : own, keys = OfKeys ? own : tile;
        const bool masked = queries == keys || args.first[min(queries + kTile - 1, last)] > keys;
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int column = column_of(n, i);
                const float shift = OfKeys ? shared.lse2[buffer][column] : own_lse2[i / 2];
                p[n][i] = exp2_fast(fmaf(p[n][i], scale_log2, -shift));
                if (masked) {
                    const int query = queries + (OfKeys ? column : row_of(i));
                    const int key = keys + (OfKeys ? row_of(i) : column);
                    if (key > query || key < args.first[min(query, last)]) p[n][i] = 0;
                }
                slopes[n][i] = p[n][i] * (slopes[n][i] - (OfKeys ? shared.delta[buffer][column]
                                                                 : own_delta[i / 2]));
            }
        Factor a;
        if (OfKeys) {
            round(a, p);
            multiply_columns(dy, a, others[1]);
        }
        round(a, slopes);
        multiply_columns(dx, a, others[0]);
        __syncthreads();  // all have read this buffer before the next step's copy overwrites it
    }
    T* dqkv = static_cast<T*>(args.dqkv);
    write_rows(dqkv + args.part(OfKeys ? 1 : 0, 0, h), stride, own, args.rows, dx,
               {args.scale, args.scale});
    if (OfKeys) write_rows(dqkv + args.part(2, 0, h), stride, own, args.rows, dy, {1.0f, 1.0f});
}

template <class Args>
void launch_tiles(Context& ctx, void (*kernel)(Args, float), const Args& args) {
    constexpr int kBytes = sizeof(Shared);
    const dim3 blocks(static_cast<unsigned>(ceil_div(args.rows, kTile)),
                      static_cast<unsigned>(args.heads));
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    kernel<<<blocks, kTilesThreads, kBytes, stream_of(ctx)>>>(
        args, args.scale * static_cast<float>(M_LOG2E));
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void self_attention_by_tiles(Context& ctx, const SelfAttentionArgs& args) {
    launch_tiles<SelfAttentionArgs>(ctx, forward_kernel, args);
}

void self_attention_backward_by_tiles(Context& ctx, const SelfAttentionBackwardArgs& args) {
    launch_tiles<SelfAttentionBackwardArgs>(ctx, backward_kernel<true>, args);
    launch_tiles<SelfAttentionBackwardArgs>(ctx, backward_kernel<false>, args);
}

}  // namespace hark::cuda
