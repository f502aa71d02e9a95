#include "kernels/attention/attention_kernels.cuh"
#include "kernels/attention/online_softmax.cuh"
#include "kernels/cuda/mma.cuh"

namespace hark::cuda {
namespace {

constexpr int kTile = 64;  // keys per step
constexpr int kMmaWarps = 4;
constexpr int kMmaThreads = 32 * kMmaWarps;

// Fragments of 16 queries per warp. Each fragment of keys or values from shared memory is
// multiplied by all of them. Two fill the registers if D is 64.
template <int D>
constexpr int kFragments = D <= 64 ? 2 : 1;
template <int D>
constexpr int kMmaQueries = kMmaWarps * 16 * kFragments<D>;  // per block

template <class T, int D>
struct Shared {
    MmaTile<T, D, kMmaQueries<D>> q;
    MmaTile<T, D, kTile> keys[2], values[2];  // one pair is multiplied while the next one arrives
};

// State of a warp for 16 queries.
template <int D>
struct MmaRows {
    float acc[D / 8][4] = {};  // sums of p * v
    OnlineSoftmax softmax;
    int firsts[2], limits[2];  // the keys that the lane's two queries see
};

using MmaScores = float[kTile / 8][4];  // of 16 queries, then their probabilities

// scores = q keys^T
template <class T, int D, int F>
__device__ void multiply_keys(MmaScores (&scores)[F], const uint32_t (&q)[F][D / 16][4],
                              const MmaTile<T, D, kTile>& keys) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int c = 0; c < D / 16; ++c)
#pragma unroll
        for (int k = 0; k < kTile / 16; ++k) {
            uint32_t b[4];  // keys 0-7 of the 16, both halves of the channels; then keys 8-15
            load_matrices<false>(
                b, &keys.values[k * 16 + matrix / 2 * 8 + lane % 8][c * 16 + matrix % 2 * 8]);
#pragma unroll
            for (int f = 0; f < F; ++f) {
                mma(T{}, scores[f][2 * k], q[f][c], b[0], b[1]);
                mma(T{}, scores[f][2 * k + 1], q[f][c], b[2], b[3]);
            }
        }
}

// MmaScores of keys that a query does not see become -infinity.
template <int D>
__device__ void mask_mma(MmaScores& scores, const MmaRows<D>& rows, int tile) {
    const int lane = threadIdx.x % 32;
    if (max(rows.firsts[0], rows.firsts[1]) <= tile &&
        tile + kTile <= min(rows.limits[0], rows.limits[1]))
        return;
#pragma unroll
    for (int k = 0; k < kTile / 8; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int key = tile + k * 8 + lane % 4 * 2 + i % 2;
            if (key < rows.firsts[i / 2] || key >= rows.limits[i / 2]) scores[k][i] = -INFINITY;
        }
}

// MmaScores of products become those of attention: times the scale, with a soft cap.
__device__ inline void scale_mma(MmaScores& scores, const AttentionArgs& args) {
#pragma unroll
    for (int k = 0; k < kTile / 8; ++k)
#pragma unroll
        for (float& score : scores[k]) score = args.score(score);
}

// acc (16, D) += p values
template <class T, int D, int F>
__device__ void multiply_values(MmaRows<D> (&rows)[F], const MmaScores (&p)[F],
                                const MmaTile<T, D, kTile>& values) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k) {
        uint32_t a[F][4];  // two neighbouring accumulator fragments are one left operand
#pragma unroll
        for (int f = 0; f < F; ++f)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                a[f][i] =
                    pack(T{}, p[f][2 * k + i / 2][i % 2 * 2], p[f][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int c = 0; c < D / 16; ++c) {
            uint32_t b[4];  // channels 0-7 of the 16, both halves of the keys; then channels 8-15
            load_matrices<true>(
                b, &values.values[k * 16 + matrix % 2 * 8 + lane % 8][c * 16 + matrix / 2 * 8]);
#pragma unroll
            for (int f = 0; f < F; ++f) {
                mma(T{}, rows[f].acc[2 * c], a[f], b[0], b[1]);
                mma(T{}, rows[f].acc[2 * c + 1], a[f], b[2], b[3]);
            }
        }
    }
}

template <class T, int D>
__device__ void write_mma_rows(const AttentionArgs& args, MmaRows<D>& rows, int h, int start,
                               int query, int n) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float sum = rows.softmax.sums[half];
        for (int step = 1; step <= 2; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        sum += args.sink(h, rows.softmax.largest[half]);
        const float factor = sum > 0 ? 1.0f / sum : 0.0f;
        if (query + half * 8 >= n) continue;
        const int64_t row = (int64_t{start + query + half * 8} * args.heads + h) * args.d;
#pragma unroll
        for (int c = 0; c < D / 8; ++c) {
            if (c * 8 >= args.d) break;
            const int64_t at = row + c * 8 + lane % 4 * 2;
            const float x = rows.acc[c][2 * half] * factor, y = rows.acc[c][2 * half + 1] * factor;
            store_pair<T>(args, at, x, y);
        }
    }
}

// Block (tile of queries, h, b). D is the head's channels rounded up to 64 or 128. With `Options`
// the largest score is kept times the scale, else before it.
template <class T, int D, bool Options>
__global__ void __launch_bounds__(kMmaThreads) tile_kernel(AttentionArgs args) {
    constexpr int F = kFragments<D>;
    extern __shared__ __align__(16) unsigned char memory[];
    Shared<T, D>& shared = *reinterpret_cast<Shared<T, D>*>(memory);
    const int h = blockIdx.y, b = blockIdx.z, first = blockIdx.x * kMmaQueries<D>;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    if (first >= n) return;
    const int own = threadIdx.x / 32 * 16 * F,
              lane = threadIdx.x % 32;  // own: the warp's first query
    const int end = max(0, args.visible(b, n, min(first + kMmaQueries<D>, n) - 1));
    const KeyRows rows_of_keys = args.key_rows(b, h);
    const T* keys = static_cast<const T*>(args.keys);
    const T* values = static_cast<const T*>(args.values);
    const auto start_keys = [&](int tile, int buffer) {
        start_copy_rows<kMmaThreads>(shared.keys[buffer], keys, rows_of_keys, tile, end, args.d);
        start_copy_rows<kMmaThreads>(shared.values[buffer], values, rows_of_keys, tile, end,
                                     args.d);
        __pipeline_commit();
    };
    start_copy<kMmaThreads>(
        shared.q, static_cast<const T*>(args.q) + int64_t{start} * args.q_stride + h * args.d,
        args.q_stride, first, n, args.d);
    __pipeline_commit();
    const int first_tile = Options ? args.first_key(b, n, first) / kTile * kTile : 0;
    start_keys(first_tile, 0);

    __pipeline_wait_prior(1);
    __syncthreads();
    uint32_t q[F][D / 16][4];
    MmaRows<D> rows[F];
    const int query = first + own + lane / 4;  // the lane's first query
#pragma unroll
    for (int f = 0; f < F; ++f) {
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            load_matrices<false>(
                q[f][c], &shared.q.values[own + f * 16 + lane % 16][c * 16 + lane / 16 * 8]);
        for (int half = 0; half < 2; ++half) {
            const int j = query + f * 16 + half * 8;
            rows[f].firsts[half] = Options && j < n ? args.first_key(b, n, j) : 0;
            rows[f].limits[half] = j < n ? args.visible(b, n, j) : 0;
        }
    }

    for (int tile = first_tile, buffer = 0; tile < end; tile += kTile, buffer ^= 1) {
        start_keys(tile + kTile, buffer ^ 1);  // past the end: zeros that are not read
        __pipeline_wait_prior(1);
        __syncthreads();
        MmaScores scores[F] = {};
        multiply_keys<T, D>(scores, q, shared.keys[buffer]);
#pragma unroll
        for (int f = 0; f < F; ++f) {
            if (Options) scale_mma(scores[f], args);
            mask_mma(scores[f], rows[f], tile);
            soften(scores[f], rows[f].acc, rows[f].softmax, Options ? 1.0f : args.scale_log2);
        }
        multiply_values<T, D>(rows, scores, shared.values[buffer]);
        __syncthreads();  // all have read this buffer before the next step's copy overwrites it
    }
    __pipeline_wait_prior(0);
#pragma unroll
    for (int f = 0; f < F; ++f) write_mma_rows<T, D>(args, rows[f], h, start, query + f * 16, n);
}

template <class T, int D>
void launch_mma(Context& ctx, const AttentionArgs& args) {
    const dim3 grid(static_cast<unsigned>(ceil_div(args.max_queries, kMmaQueries<D>)),
                    static_cast<unsigned>(args.heads), static_cast<unsigned>(args.sequences));
    constexpr int kBytes = sizeof(Shared<T, D>);
    const auto kernel = args.has_options() ? tile_kernel<T, D, true> : tile_kernel<T, D, false>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    kernel<<<grid, kMmaThreads, kBytes, stream_of(ctx)>>>(args);
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void attention_flash_mma(Context& ctx, const AttentionArgs& args) {
    const bool half = args.cache_type == Dtype::f16, narrow = args.d <= 64;
    const auto chosen =
        half ? (narrow ? launch_mma<__half, 64> : launch_mma<__half, 128>)
             : (narrow ? launch_mma<__nv_bfloat16, 64> : launch_mma<__nv_bfloat16, 128>);
    chosen(ctx, args);
}

}  // namespace hark::cuda
