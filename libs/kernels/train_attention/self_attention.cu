// Causal self-attention for training on the GPU: the checks, the choice of the kernels, and the
// kernels for every type and size, in f32 arithmetic on the plain units.
#include <cmath>

#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cuda/cuda_common.cuh"
#include "kernels/elementwise/rows.cuh"
#include "kernels/train_attention/self_attention_kernels.cuh"

namespace hark::cuda {
namespace {

constexpr int kSelfThreads = 256, kSide = 16;  // 16 x 16 threads per block compute scores

// Pitch of rows in shared tile_memory: neighbouring rows begin in different banks.
__host__ __device__ int pitch_of(int d) { return d | 1; }

// Loads rows [first, first + R), `stride` elements apart; zeros from `end`.
template <class T, int R>
__device__ void load_tile(float* to, const T* from, int64_t stride, int first, int end, int d) {
    for (int i = threadIdx.x; i < R * d; i += kSelfThreads) {
        const int r = i / d, c = i - r * d;
        to[r * pitch_of(d) + c] = first + r < end ? to_f32(from[(first + r) * stride + c]) : 0.0f;
    }
}

template <class T, int R>
__device__ void store_tile(T* to, const float* from, int64_t stride, int first, int end, int d,
                           const float* factors = nullptr) {
    for (int i = threadIdx.x; i < R * d; i += kSelfThreads) {
        const int r = i / d, c = i - r * d;
        if (first + r >= end) return;
        const float x = from[r * pitch_of(d) + c];
        to[(first + r) * stride + c] = from_f32<T>(factors ? x * factors[r] : x);
    }
}

template <int R>
__device__ void clear_tile(float* to, int d) {
    for (int i = threadIdx.x; i < R * pitch_of(d); i += kSelfThreads) to[i] = 0;
}

template <int R>
using ScoreTile = float[R][R + 1];

// Calls f(i, j) for the thread's elements of a tile of scores.
template <int R, class F>
__device__ void each_score(const F& f) {
    for (int i = threadIdx.x / kSide; i < R; i += kSide)
        for (int j = threadIdx.x % kSide; j < R; j += kSide) f(i, j);
}

// scores = a b^T, the thread's elements.
template <int R>
__device__ void multiply_rows(ScoreTile<R>& scores, const float* a, const float* b, int d) {
    constexpr int kOwn = R / kSide;
    const int y = threadIdx.x / kSide, x = threadIdx.x % kSide, pitch = pitch_of(d);
    float sums[kOwn][kOwn] = {};
    for (int c = 0; c < d; ++c)
#pragma unroll
        for (int i = 0; i < kOwn; ++i)
#pragma unroll
            for (int j = 0; j < kOwn; ++j)
                sums[i][j] = fmaf(a[(y + i * kSide) * pitch + c], b[(x + j * kSide) * pitch + c],
                                  sums[i][j]);
#pragma unroll
    for (int i = 0; i < kOwn; ++i)
#pragma unroll
        for (int j = 0; j < kOwn; ++j) scores[y + i * kSide][x + j * kSide] = sums[i][j];
}

// acc += scores b, or scores^T b; the thread's elements.
template <int R, bool Transposed>
__device__ void add_weighted(float* acc, const ScoreTile<R>& scores, const float* b, int d) {
    constexpr int kOwn = R / (kSelfThreads / 32);
    const int y = threadIdx.x / 32, pitch = pitch_of(d);
    for (int c = threadIdx.x % 32; c < d; c += 32) {
        float sums[kOwn] = {};
        for (int j = 0; j < R; ++j) {
            const float value = b[j * pitch + c];
#pragma unroll
            for (int i = 0; i < kOwn; ++i) {
                const int row = y + i * (kSelfThreads / 32);
                sums[i] = fmaf(Transposed ? scores[j][row] : scores[row][j], value, sums[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < kOwn; ++i) acc[(y + i * (kSelfThreads / 32)) * pitch + c] += sums[i];
    }
}

// Block (tile of queries, head): maxima and sums are updated with each tile of keys.
template <class T, int R>
__global__ void __launch_bounds__(kSelfThreads) forward_kernel(SelfAttentionArgs args) {
    extern __shared__ float tile_memory[];
    __shared__ ScoreTile<R> scores;
    __shared__ float largest[R], sums[R], factors[R];
    const int h = blockIdx.y, a = blockIdx.x * R, end = min(a + R, args.rows), d = args.d;
    const int tile = R * pitch_of(d), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *q = tile_memory, *keys = q + tile, *values = keys + tile, *acc = values + tile;
    const T* qkv = static_cast<const T*>(args.qkv);
    const auto load = [&](float* to, int which, int first) {
        load_tile<T, R>(to, qkv + args.part(which, h), args.width(), first, end, d);
    };
    load(q, 0, a);
    clear_tile<R>(acc, d);
    if (threadIdx.x < R) largest[threadIdx.x] = -INFINITY, sums[threadIdx.x] = 0;
    for (int first = args.first[a] / R * R; first < end; first += R) {
        __syncthreads();
        load(keys, 1, first);
        load(values, 2, first);
        __syncthreads();
        multiply_rows<R>(scores, q, keys, d);
        __syncthreads();
        for (int i = warp; i < R && a + i < end; i += kSelfThreads / 32) {
            const int key = first + lane;
            const bool seen = lane < R && key >= args.first[a + i] && key <= a + i;
            const float score = seen ? scores[i][lane] * args.scale : -INFINITY;
            const float before = largest[i], now = fmaxf(before, warp_max(score));
            const float shift = now == -INFINITY ? 0.0f : now, kept = expf(before - shift);
            const float p = expf(score - shift), sum = warp_sum(p);
            if (lane < R) scores[i][lane] = p;
            for (int c = lane; c < d; c += 32) acc[i * pitch_of(d) + c] *= kept;
            __syncwarp();
            if (lane == 0) largest[i] = now, sums[i] = fmaf(sums[i], kept, sum);
        }
        __syncthreads();
        add_weighted<R, false>(acc, scores, values, d);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < R && a + i < end; i += kSelfThreads) {
        factors[i] = 1 / sums[i];
        args.lse[int64_t{a + i} * args.heads + h] = largest[i] + logf(sums[i]);
    }
    __syncthreads();
    store_tile<T, R>(static_cast<T*>(args.out) + args.place(0, h), acc, args.channels(), a, end, d,
                     factors);
}

// Probabilities and slopes of the scores of a tile of queries from row a and a tile of keys from
// row b, from the queries' products with keys.
template <int R>
__device__ void find_slopes(ScoreTile<R>& scores, ScoreTile<R>& slopes,
                            const SelfAttentionBackwardArgs& args, int h, int a, int b) {
    each_score<R>([&](int i, int j) {
        const int row = a + i, key = b + j;
        const bool seen = row < args.rows && key <= row && key >= args.first[row];
        const int64_t at = int64_t{h} * args.padded + row;
        const float p =
            seen ? expf(scores[i][j] * args.scale - args.lse[int64_t{row} * args.heads + h]) : 0.0f;
        scores[i][j] = p;
        slopes[i][j] = seen ? p * (slopes[i][j] - args.delta[at]) * args.scale : 0.0f;
    });
}

// Block (tile of keys, head of keys and values): their gradients, summed over the heads that share
// them.
template <class T, int R>
__global__ void __launch_bounds__(kSelfThreads) keys_kernel(SelfAttentionBackwardArgs args) {
    extern __shared__ float tile_memory[];
    __shared__ ScoreTile<R> scores, slopes;
    const int group = args.heads / args.kv_heads, first_head = blockIdx.y * group;
    const int b = blockIdx.x * R, d = args.d, tile = R * pitch_of(d);
    const int stride = args.width(), last = min(b + R, args.rows) - 1;
    float *keys = tile_memory, *values = keys + tile, *q = values + tile, *dout = q + tile;
    float *dk = dout + tile, *dv = dk + tile;
    const T* qkv = static_cast<const T*>(args.qkv);
    load_tile<T, R>(keys, qkv + args.part(1, first_head), stride, b, args.rows, d);
    load_tile<T, R>(values, qkv + args.part(2, first_head), stride, b, args.rows, d);
    clear_tile<R>(dk, d);
    clear_tile<R>(dv, d);
    for (int h = first_head; h < first_head + group; ++h) {
        for (int a = b, end = args.end[last]; a < end; a += R) {
            __syncthreads();
            load_tile<T, R>(q, qkv + args.part(0, h), stride, a, args.rows, d);
            load_tile<T, R>(dout, static_cast<const T*>(args.dout) + args.place(0, h),
                            args.channels(), a, args.rows, d);
            __syncthreads();
            multiply_rows<R>(scores, q, keys, d);
            multiply_rows<R>(slopes, dout, values, d);
            find_slopes<R>(scores, slopes, args, h, a, b);
            __syncthreads();
            add_weighted<R, true>(dk, slopes, q, d);
            add_weighted<R, true>(dv, scores, dout, d);
        }
    }
    __syncthreads();
    T* dqkv = static_cast<T*>(args.dqkv);
    store_tile<T, R>(dqkv + args.part(1, first_head), dk, stride, b, args.rows, d);
    store_tile<T, R>(dqkv + args.part(2, first_head), dv, stride, b, args.rows, d);
}

// Block (tile of queries, head): the gradient of its queries.
template <class T, int R>
__global__ void __launch_bounds__(kSelfThreads) queries_kernel(SelfAttentionBackwardArgs args) {
    extern __shared__ float tile_memory[];
    __shared__ ScoreTile<R> scores, slopes;
    const int h = blockIdx.y, a = blockIdx.x * R, d = args.d, tile = R * pitch_of(d);
    const int stride = args.width(), end = min(a + R, args.rows);
    float *keys = tile_memory, *values = keys + tile, *q = values + tile, *dout = q + tile;
    float* dq = dout + tile;
    const T* qkv = static_cast<const T*>(args.qkv);
    load_tile<T, R>(q, qkv + args.part(0, h), stride, a, end, d);
    load_tile<T, R>(dout, static_cast<const T*>(args.dout) + args.place(0, h), args.channels(), a,
                    end, d);
    clear_tile<R>(dq, d);
    for (int b = args.first[a] / R * R; b < end; b += R) {
        __syncthreads();
        load_tile<T, R>(keys, qkv + args.part(1, h), stride, b, end, d);
        load_tile<T, R>(values, qkv + args.part(2, h), stride, b, end, d);
        __syncthreads();
        multiply_rows<R>(scores, q, keys, d);
        multiply_rows<R>(slopes, dout, values, d);
        find_slopes<R>(scores, slopes, args, h, a, b);
        __syncthreads();
        add_weighted<R, false>(dq, slopes, keys, d);
    }
    __syncthreads();
    store_tile<T, R>(static_cast<T*>(args.dqkv) + args.part(0, h), dq, stride, a, end, d);
}

// Eight lanes per row and head; a block's 32 begin with the heads of one row.
template <class T, bool Packed>
__global__ void __launch_bounds__(kSelfThreads) prepare_kernel(SelfAttentionBackwardArgs args) {
    const int h = blockIdx.x % args.heads, lane = threadIdx.x % 8;
    const int row = blockIdx.x / args.heads * (kSelfThreads / 8) + threadIdx.x / 8;
    const bool inside = row < args.rows;
    const int64_t at = args.place(row, h);
    const T *out = static_cast<const T*>(args.out) + at,
            *dout = static_cast<const T*>(args.dout) + at;
    float sum = 0;
    if (inside && Packed) {
        for (int c = lane * kPack; c < args.d; c += 8 * kPack) {
            const auto x = load_pack<kPack>(out + c), dx = load_pack<kPack>(dout + c);
            for (int i = 0; i < kPack; ++i)
                sum = fmaf(to_f32(x.values[i]), to_f32(dx.values[i]), sum);
        }
    } else if (inside) {
        for (int c = lane; c < args.d; c += 8) sum = fmaf(to_f32(out[c]), to_f32(dout[c]), sum);
    }
    for (int step = 1; step < 8; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane > 0) return;
    const int64_t to = int64_t{h} * args.padded + row;
    args.delta[to] = sum;
    args.lse2[to] = inside ? args.lse[int64_t{row} * args.heads + h] * kLog2E : INFINITY;
}

template <class T>
void prepare(Context& ctx, const SelfAttentionBackwardArgs& args) {
    const bool packed = in_packs(args.d, {args.out, args.dout}) && in_packs(args.channels(), {});
    const auto kernel = packed ? prepare_kernel<T, true> : prepare_kernel<T, false>;
    const int64_t blocks = args.padded / (kSelfThreads / 8) * int64_t{args.heads};
    kernel<<<static_cast<unsigned>(blocks), kSelfThreads, 0, stream_of(ctx)>>>(args);
    CUDA_CHECK(cudaGetLastError());
}

// One block per tile of R rows and each of `heads` heads, with `tiles` tiles in shared tile_memory.
template <int R, class Args>
void launch(Context& ctx, void (*kernel)(Args), const Args& args, int tiles, int heads) {
    const int bytes = tiles * R * pitch_of(args.d) * static_cast<int>(sizeof(float));
    const dim3 blocks(static_cast<unsigned>(ceil_div(args.rows, R)), static_cast<unsigned>(heads));
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<blocks, kSelfThreads, bytes, stream_of(ctx)>>>(args);
    CUDA_CHECK(cudaGetLastError());
}

// The widest heads use tiles of 16 rows, so that six of them fit every GPU's shared tile_memory.
bool is_wide(int d) { return d > 96; }

template <class T>
void plain_forward(Context& ctx, const SelfAttentionArgs& args) {
    if (is_wide(args.d)) return launch<16>(ctx, forward_kernel<T, 16>, args, 4, args.heads);
    launch<32>(ctx, forward_kernel<T, 32>, args, 4, args.heads);
}

template <class T>
void plain_backward(Context& ctx, const SelfAttentionBackwardArgs& args) {
    if (is_wide(args.d)) {
        launch<16>(ctx, keys_kernel<T, 16>, args, 6, args.kv_heads);
        launch<16>(ctx, queries_kernel<T, 16>, args, 5, args.heads);
    } else {
        launch<32>(ctx, keys_kernel<T, 32>, args, 6, args.kv_heads);
        launch<32>(ctx, queries_kernel<T, 32>, args, 5, args.heads);
    }
}

SelfAttentionArgs args_of(const char* op, const Tensor& out, const Tensor& lse, const Tensor& qkv,
                          const Sequences& sequences) {
    const int64_t rows = qkv.dim(0), channels = out.dim(1), heads = lse.dim(1);
    require(heads <= kMostGridY && channels / heads <= kMostTrainedHead, op, ": expected up to ",
            kMostGridY, " heads of up to ", kMostTrainedHead, " channels on the GPU, found ", qkv,
            " and ", lse);
    require(rows < (int64_t{1} << 30), op, ": expected fewer than 2^30 rows, found ", rows);
    const auto d = static_cast<int>(channels / heads);
    return {out.data,
            lse.as<float>(),
            qkv.data,
            sequences.first.as<int32_t>(),
            sequences.end.as<int32_t>(),
            static_cast<int>(rows),
            static_cast<int>(heads),
            d,
            1 / std::sqrt(static_cast<float>(d)),
            static_cast<int>((qkv.dim(1) / d - heads) / 2)};
}

// Whether the matrix units take the call.
bool fits_tiles(const SelfAttentionArgs& args, Dtype dtype,
                std::initializer_list<const void*> all) {
    return dtype == Dtype::bf16 && args.d <= kMostTiledHead && in_packs(args.d, all);
}

}  // namespace

void self_attention(Context& ctx, Tensor out, Tensor lse, Tensor qkv, const Sequences& sequences) {
    const SelfAttentionArgs args = args_of("self_attention", out, lse, qkv, sequences);
    enter(ctx, {&out, &lse, &qkv, &sequences.first, &sequences.end});
    if (args.rows == 0) return;
    if (qkv.dtype == Dtype::f32) return plain_forward<float>(ctx, args);
    if (!fits_tiles(args, qkv.dtype, {out.data, qkv.data}))
        return plain_forward<__nv_bfloat16>(ctx, args);
    if (!self_attention_by_wgmma(ctx, args)) self_attention_by_tiles(ctx, args);
}

void self_attention_backward(Context& ctx, Tensor dqkv, Tensor dout, Tensor out, Tensor lse,
                             Tensor qkv, const Sequences& sequences) {
    const char* op = "self_attention_backward";
    SelfAttentionBackwardArgs args{args_of(op, out, lse, qkv, sequences)};
    enter(ctx, {&dqkv, &dout, &out, &lse, &qkv, &sequences.first, &sequences.end});
    if (args.rows == 0) return;
    const Arena::Scope scope(ctx.arena);
    args.dqkv = dqkv.data;
    args.dout = dout.data;
    args.padded = static_cast<int>(ceil_div(args.rows, kRowPadding) * kRowPadding);
    args.lse2 = ctx.arena.tensor(Dtype::f32, {args.heads, args.padded}).as<float>();
    args.delta = ctx.arena.tensor(Dtype::f32, {args.heads, args.padded}).as<float>();
    if (qkv.dtype == Dtype::f32) {
        prepare<float>(ctx, args);
        return plain_backward<float>(ctx, args);
    }
    prepare<__nv_bfloat16>(ctx, args);
    if (!fits_tiles(args, qkv.dtype, {out.data, qkv.data, dout.data, dqkv.data}))
        plain_backward<__nv_bfloat16>(ctx, args);
    else if (!self_attention_backward_by_wgmma(ctx, args))
        self_attention_backward_by_tiles(ctx, args);
}

}  // namespace hark::cuda
