// Self-attention for training on the matrix units of compute capability 8.0 and later. A block has
// a tile of 64 rows of its own, 16 per warp, and loops over tiles of 64 or 32 others. D: channels
// per head in shared memory and registers, a multiple of 16; those from args.d are zeros.
#include "kernels/attention/attention_kernels.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/train_attention/self_attention_kernels.cuh"

namespace hark::cuda {
namespace {

using T = __nv_bfloat16;
constexpr int kOwn = 64, kTilesThreads = 128;

// A warp's 16 rows by N columns, as a left operand and as sums, in PTX's layouts of mma.m16n8k16.
template <int N>
using Factor = uint32_t[N / 16][4];
template <int N>
using Sums = float[N / 8][4];

// Starts to copy the rows [first, first + Rows), `stride` elements apart; zeros from `end`.
template <int D, int Rows>
__device__ void start_copy(MmaTile<T, D, Rows>& to, const T* from, int64_t stride, int first,
                           int end, int d) {
    cuda::start_copy<kTilesThreads>(to, from, stride, first, end, d);
}

// Loads the channels [16 k, 16 k + 16) of this warp's 16 rows of a tile.
template <int D>
__device__ void load_part(uint32_t (&a)[4], const MmaTile<T, D, kOwn>& tile, int k) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane % 16;
    load_matrices<false>(a, &tile.values[row][k * 16 + lane / 16 * 8]);
}

template <int D>
__device__ void load_factor(Factor<D>& a, const MmaTile<T, D, kOwn>& tile) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) load_part(a[k], tile, k);
}

// c += a b^T of the channels [16 k, 16 k + 16), by the rows of b
template <int D, int N>
__device__ void multiply_part(Sums<N>& c, const uint32_t (&a)[4], const MmaTile<T, D, N>& b,
                              int k) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int n = 0; n < N / 16; ++n) {
        uint32_t two[4];  // rows 0-7 of 16, both halves of the channels; then rows 8-15
        load_matrices<false>(
            two, &b.values[n * 16 + matrix / 2 * 8 + lane % 8][k * 16 + matrix % 2 * 8]);
        mma(T{}, c[2 * n], a, two[0], two[1]);
        mma(T{}, c[2 * n + 1], a, two[2], two[3]);
    }
}

// c += a b^T, with a in registers or in shared memory
template <int D, int N>
__device__ void multiply_tile_rows(Sums<N>& c, const Factor<D>& a, const MmaTile<T, D, N>& b) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) multiply_part<D, N>(c, a[k], b, k);
}
template <int D, int N>
__device__ void multiply_tile_rows(Sums<N>& c, const MmaTile<T, D, kOwn>& a,
                                   const MmaTile<T, D, N>& b) {
#pragma unroll
    for (int k = 0; k < D / 16; ++k) {
        uint32_t part[4];
        load_part(part, a, k);
        multiply_part<D, N>(c, part, b, k);
    }
}

// c += a b, over the rows of b
template <int D, int N>
__device__ void multiply_columns(Sums<D>& c, const Factor<N>& a, const MmaTile<T, D, N>& b) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < N / 16; ++k)
#pragma unroll
        for (int n = 0; n < D / 16; ++n) {
            uint32_t two[4];  // channels 0-7 of 16, both halves of the rows; then channels 8-15
            load_matrices<true>(
                two, &b.values[k * 16 + matrix % 2 * 8 + lane % 8][n * 16 + matrix / 2 * 8]);
            mma(T{}, c[2 * n], a[k], two[0], two[1]);
            mma(T{}, c[2 * n + 1], a[k], two[2], two[3]);
        }
}

// Neighbouring sums are one left operand.
template <int N>
__device__ void round(uint32_t (&a)[N][4], const float (&c)[2 * N][4]) {
#pragma unroll
    for (int i = 0; i < 4 * N; ++i)
        a[i / 4][i % 4] = pack(T{}, c[i / 2][i % 2 * 2], c[i / 2][i % 2 * 2 + 1]);
}

// The row and the column in a tile of the warp's sums[n][i].
__device__ int row_of(int i) { return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 * 8; }
__device__ int column_of(int n, int i) { return n * 8 + threadIdx.x % 4 * 2 + i % 2; }

// Writes the warp's rows of the tile at row `first`, each times its factor, up to row `end`: the
// first d columns.
template <int N>
__device__ void write_rows(T* to, int64_t stride, int first, int end, int d,
                           const float (&sums)[N][4], const float (&factors)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = first + row_of(2 * half);
        if (row >= end) continue;
#pragma unroll
        for (int n = 0; n < N; ++n)
            if (n * 8 < d)
                *reinterpret_cast<uint32_t*>(to + row * stride + column_of(n, 0)) = pack(
                    T{}, sums[n][2 * half] * factors[half], sums[n][2 * half + 1] * factors[half]);
    }
}

template <int D, int N>
struct ForwardShared {
    MmaTile<T, D, kOwn> q;
    MmaTile<T, D, N> others[2][2];  // one pair is multiplied while the next one arrives
};

// Block (tile of queries, head); N keys per step.
template <int D, int N>
__global__ void __launch_bounds__(kTilesThreads)
    forward_kernel(const SelfAttentionArgs args, float scale_log2) {
    extern __shared__ __align__(16) unsigned char memory[];
    auto& shared = *reinterpret_cast<ForwardShared<D, N>*>(memory);
    const int h = blockIdx.y, a = blockIdx.x * kOwn, end = min(a + kOwn, args.rows);
    const int64_t stride = args.width();
    const T* qkv = static_cast<const T*>(args.qkv);
    const auto start_others = [&](int tile, int buffer) {
        for (int which = 1; which <= 2; ++which)
            start_copy(shared.others[buffer][which - 1], qkv + args.part(which, h), stride, tile,
                       end, args.d);
        __pipeline_commit();
    };
    const int begin = args.first[a] / N * N, last_first = args.first[end - 1];
    start_copy(shared.q, qkv + args.part(0, h), stride, a, end, args.d);
    start_others(begin, 0);
    int first[2];
    for (int half = 0; half < 2; ++half)
        first[half] = args.first[min(a + row_of(2 * half), end - 1)];
    Factor<D> q;
    Sums<D> acc = {};
    OnlineSoftmax rows;
    for (int tile = begin, buffer = 0; tile < end; tile += N, buffer ^= 1) {
        if (tile + N < end) start_others(tile + N, buffer ^ 1);
        __pipeline_wait_prior(tile + N < end ? 1 : 0);
        __syncthreads();
        if (tile == begin) load_factor<D>(q, shared.q);
        Sums<N> scores = {};
        multiply_tile_rows<D, N>(scores, q, shared.others[buffer][0]);
        if (tile + N > a || last_first > tile) {
#pragma unroll
            for (int n = 0; n < N / 8; ++n)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int key = tile + column_of(n, i);
                    if (key > a + row_of(i) || key < first[i / 2]) scores[n][i] = -INFINITY;
                }
        }
        soften(scores, acc, rows, scale_log2);
        Factor<N> p;
        round(p, scores);
        multiply_columns<D, N>(acc, p, shared.others[buffer][1]);
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
    write_rows(static_cast<T*>(args.out) + args.place(0, h), args.channels(), a, end, args.d, acc,
               factors);
}

template <int D, int N>
struct BackwardShared {
    MmaTile<T, D, kOwn> own[2];
    MmaTile<T, D, N> others[2][2];
    float lse2[2][N], delta[2][N];
};

// Block (tile of keys, head of keys and values) or (tile of queries, head); N others per step.
// OfKeys: the gradients of its keys and values, from the queries that see them and the gradients of
// their outputs, one head of the group after another. Otherwise: the gradient of its queries, from
// the keys and values.
template <int D, int N, bool OfKeys>
__global__ void __launch_bounds__(kTilesThreads)
    backward_kernel(const SelfAttentionBackwardArgs args, float scale_log2) {
    extern __shared__ __align__(16) unsigned char memory[];
    auto& shared = *reinterpret_cast<BackwardShared<D, N>*>(memory);
    const int group = OfKeys ? args.heads / args.kv_heads : 1;
    const int first_head = blockIdx.y * group, own = blockIdx.x * kOwn;
    const int64_t stride = args.width();
    const T *qkv = static_cast<const T*>(args.qkv), *dout = static_cast<const T*>(args.dout);
    // Queries and the gradients of their outputs, or keys and values.
    const auto start_pair = [&](auto& to, bool keys, int h, int tile) {
        start_copy(to[0], qkv + args.part(keys ? 1 : 0, h), stride, tile, args.rows, args.d);
        if (keys)
            start_copy(to[1], qkv + args.part(2, h), stride, tile, args.rows, args.d);
        else
            start_copy(to[1], dout + args.place(0, h), args.channels(), tile, args.rows, args.d);
    };
    const auto start_others = [&](int h, int tile, int buffer) {
        start_pair(shared.others[buffer], !OfKeys, h, tile);
        if (OfKeys && threadIdx.x < N) {
            const int64_t at = int64_t{h} * args.padded + tile + threadIdx.x;
            shared.lse2[buffer][threadIdx.x] = args.lse2[at];
            shared.delta[buffer][threadIdx.x] = args.delta[at];
        }
        __pipeline_commit();
    };
    const int last = args.rows - 1;
    const int begin = OfKeys ? own : args.first[own] / N * N;
    const int end = OfKeys ? args.end[min(own + kOwn - 1, last)] : min(own + kOwn, args.rows);
    start_pair(shared.own, OfKeys, first_head, own);
    start_others(first_head, begin, 0);
    float own_lse2[2], own_delta[2];  // of queries
    for (int half = 0; half < 2 && !OfKeys; ++half) {
        const int64_t at = int64_t{first_head} * args.padded + own + row_of(2 * half);
        own_lse2[half] = args.lse2[at];
        own_delta[half] = args.delta[at];
    }
    // Registers do not suffice for all of the widest heads' keys and values, and their gradients.
    constexpr bool kInRegisters = !OfKeys || D <= 96;
    Factor<D> x, y;
    Sums<D> dx = {}, dy = {};
    int buffer = 0;
    for (int h = first_head, tile = begin; h < first_head + group; buffer ^= 1) {
        const bool next_head = tile + N >= end;
        const int h_after = h + next_head, after = next_head ? begin : tile + N;
        const bool more = h_after < first_head + group;
        if (more) start_others(h_after, after, buffer ^ 1);
        __pipeline_wait_prior(more ? 1 : 0);
        __syncthreads();
        if (tile == begin && h == first_head) {
            load_factor<D>(x, shared.own[0]);
            if (kInRegisters) load_factor<D>(y, shared.own[1]);
        }
        const auto& others = shared.others[buffer];
        Sums<N> p = {}, slopes = {};
        multiply_tile_rows<D, N>(p, x, others[0]);
        if (kInRegisters)
            multiply_tile_rows<D, N>(slopes, y, others[1]);
        else
            multiply_tile_rows<D, N>(slopes, shared.own[1], others[1]);
        const int queries = OfKeys ? tile : own, keys = OfKeys ? own : tile;
        const bool masked = keys + (OfKeys ? kOwn : N) > queries ||
                            args.first[min(queries + (OfKeys ? N : kOwn) - 1, last)] > keys;
#pragma unroll
        for (int n = 0; n < N / 8; ++n)
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
        Factor<N> a;
        if (OfKeys) {
            round(a, p);
            multiply_columns<D, N>(dy, a, others[1]);
        }
        round(a, slopes);
        multiply_columns<D, N>(dx, a, others[0]);
        __syncthreads();  // all have read this buffer before the next step's copy overwrites it
        h = h_after;
        tile = after;
    }
    T* dqkv = static_cast<T*>(args.dqkv);
    write_rows(dqkv + args.part(OfKeys ? 1 : 0, first_head), stride, own, args.rows, args.d, dx,
               {args.scale, args.scale});
    if (OfKeys)
        write_rows(dqkv + args.part(2, first_head), stride, own, args.rows, args.d, dy,
                   {1.0f, 1.0f});
}

template <class Shared, class Args>
void launch_tiles(Context& ctx, void (*kernel)(Args, float), const Args& args, int heads) {
    constexpr int kBytes = sizeof(Shared);
    const dim3 blocks(static_cast<unsigned>(ceil_div(args.rows, kOwn)),
                      static_cast<unsigned>(heads));
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    kernel<<<blocks, kTilesThreads, kBytes, stream_of(ctx)>>>(
        args, args.scale * static_cast<float>(M_LOG2E));
    CUDA_CHECK(cudaGetLastError());
}

template <int D>
void forward(Context& ctx, const SelfAttentionArgs& args) {
    launch_tiles<ForwardShared<D, 64>>(ctx, forward_kernel<D, 64>, args, args.heads);
}

template <int D>
void backward(Context& ctx, const SelfAttentionBackwardArgs& args) {
    constexpr int kOthers = D > 64 ? 32 : 64;  // registers and 99 KB of shared memory suffice
    using Shared = BackwardShared<D, kOthers>;
    launch_tiles<Shared>(ctx, backward_kernel<D, kOthers, true>, args, args.kv_heads);
    launch_tiles<Shared>(ctx, backward_kernel<D, kOthers, false>, args, args.heads);
}

}  // namespace

void self_attention_by_tiles(Context& ctx, const SelfAttentionArgs& args) {
    by_head_size(args.d, [&](auto d) { forward<d>(ctx, args); });
}

void self_attention_backward_by_tiles(Context& ctx, const SelfAttentionBackwardArgs& args) {
    by_head_size(args.d, [&](auto d) { backward<d>(ctx, args); });
}

}  // namespace hark::cuda
