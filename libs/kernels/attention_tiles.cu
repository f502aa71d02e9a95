#include <cuda_pipeline.h>

#include "kernels/attention_kernels.cuh"
#include "kernels/load_matrices.cuh"

namespace hark::cuda {
namespace {

constexpr int kTile = 64;  // keys of a step
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kPad = 8;  // elements behind a row: 8 rows of a fragment then meet all 32 banks

// Fragments of 16 queries that a warp holds: each fragment of keys or values that it fetches from
// shared memory is multiplied by all of them. Two fill the registers where D is 64.
template <int D>
constexpr int kFragments = D <= 64 ? 2 : 1;
template <int D>
constexpr int kQueries = kWarps * 16 * kFragments<D>;  // of a block

template <class T, int D, int Rows>
struct Tile {
    T values[Rows][D + kPad];
};

template <class T, int D>
struct Shared {
    Tile<T, D, kQueries<D>> q;
    Tile<T, D, kTile> keys[2], values[2];  // one pair is multiplied while the next one arrives
};

// c (16, 8) += a (16, 16) b (16, 8), fragments as PTX lays out mma.m16n8k16.
__device__ void mma(__half, float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ void mma(__nv_bfloat16, float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                    uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Starts copying rows [first, first + R) of `from`; rows from `end` on and channels from d on
// become zeros.
template <class T, int D, int R>
__device__ void start_copy(Tile<T, D, R>& to, const T* from, int64_t stride, int first, int end,
                           int d) {
    constexpr int kChunk = 8, kChunks = D / kChunk;  // of 16 bytes
    for (int i = threadIdx.x; i < R * kChunks; i += kThreads) {
        const int row = i / kChunks, c = i % kChunks * kChunk;
        const bool inside = first + row < end && c < d;
        // Where nothing is copied the address must still be a valid one.
        const T* source = inside ? from + (first + row) * stride + c : from;
        __pipeline_memcpy_async(&to.values[row][c], source, 16, inside ? 0 : 16);
    }
}

// What a warp keeps for 16 queries. A lane has two of them, lane / 4 and lane / 4 + 8.
template <int D>
struct Rows {
    float acc[D / 8][4] = {};  // sums of p * v
    float largest[2] = {-INFINITY, -INFINITY};
    float sums[2] = {};  // of this lane's p
    int limits[2];       // keys that the query sees
};

using Scores = float[kTile / 8][4];  // of 16 queries, then their probabilities

// scores = q keys^T
template <class T, int D, int F>
__device__ void multiply_keys(Scores (&scores)[F], const uint32_t (&q)[F][D / 16][4],
                              const Tile<T, D, kTile>& keys) {
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

// scores become p = 2^((score - largest so far) * scale); what was summed before is brought to that
// maximum. The scale is positive, so that the largest score is the largest scaled too.
template <int D>
__device__ void soften(Scores& scores, Rows<D>& rows, int tile, float scale_log2) {
    const int lane = threadIdx.x % 32;
    if (tile + kTile > min(rows.limits[0], rows.limits[1])) {
#pragma unroll
        for (int k = 0; k < kTile / 8; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                if (tile + k * 8 + lane % 4 * 2 + i % 2 >= rows.limits[i / 2])
                    scores[k][i] = -INFINITY;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float highest = rows.largest[half];
#pragma unroll
        for (int k = 0; k < kTile / 8; ++k)
            highest = fmaxf(highest, fmaxf(scores[k][2 * half], scores[k][2 * half + 1]));
        for (int step = 1; step <= 2; step *= 2)
            highest = fmaxf(highest, __shfl_xor_sync(0xffffffff, highest, step));
        // Where nothing has been seen yet there is no infinity to subtract.
        const float shift = highest == -INFINITY ? 0.0f : highest * scale_log2;
        const float kept = exp2_fast(fmaf(rows.largest[half], scale_log2, -shift));
        rows.largest[half] = highest;
        rows.sums[half] *= kept;
#pragma unroll
        for (int c = 0; c < D / 8; ++c) {
            rows.acc[c][2 * half] *= kept;
            rows.acc[c][2 * half + 1] *= kept;
        }
#pragma unroll
        for (int k = 0; k < kTile / 8; ++k)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
                scores[k][i] = exp2_fast(fmaf(scores[k][i], scale_log2, -shift));
                rows.sums[half] += scores[k][i];
            }
    }
}

// acc (16, D) += p values
template <class T, int D, int F>
__device__ void multiply_values(Rows<D> (&rows)[F], const Scores (&p)[F],
                                const Tile<T, D, kTile>& values) {
    const int lane = threadIdx.x % 32, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k) {
        uint32_t a[F][4];  // two accumulator fragments side by side are one of a left factor
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
__device__ void write_rows(const AttentionArgs& args, Rows<D>& rows, int h, int start, int query,
                           int n) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float sum = rows.sums[half];
        for (int step = 1; step <= 2; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
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

// Block (tile of queries, h, b). D is the head's channels rounded up to 64 or 128.
template <class T, int D>
__global__ void __launch_bounds__(kThreads) tile_kernel(AttentionArgs args) {
    constexpr int F = kFragments<D>;
    extern __shared__ __align__(16) unsigned char memory[];
    Shared<T, D>& shared = *reinterpret_cast<Shared<T, D>*>(memory);
    const int h = blockIdx.y, b = blockIdx.z, first = blockIdx.x * kQueries<D>;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    if (first >= n) return;
    const int own = threadIdx.x / 32 * 16 * F, lane = threadIdx.x % 32;  // own: the warp's first
    const int end = max(0, args.visible(b, n, min(first + kQueries<D>, n) - 1));
    const int64_t base = args.cache_offset(b, h);
    const T* keys = static_cast<const T*>(args.keys) + base;
    const T* values = static_cast<const T*>(args.values) + base;
    const auto start_keys = [&](int tile, int buffer) {
        start_copy(shared.keys[buffer], keys, args.d, tile, end, args.d);
        start_copy(shared.values[buffer], values, args.d, tile, end, args.d);
        __pipeline_commit();
    };
    start_copy(shared.q,
               static_cast<const T*>(args.q) + int64_t{start} * args.q_stride + h * args.d,
               args.q_stride, first, n, args.d);
    __pipeline_commit();
    start_keys(0, 0);

    __pipeline_wait_prior(1);
    __syncthreads();
    uint32_t q[F][D / 16][4];
    Rows<D> rows[F];
    const int query = first + own + lane / 4;  // this lane's first
#pragma unroll
    for (int f = 0; f < F; ++f) {
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            load_matrices<false>(
                q[f][c], &shared.q.values[own + f * 16 + lane % 16][c * 16 + lane / 16 * 8]);
        for (int half = 0; half < 2; ++half) {
            const int j = query + f * 16 + half * 8;
            rows[f].limits[half] = j < n ? args.visible(b, n, j) : 0;
        }
    }

    for (int tile = 0, buffer = 0; tile < end; tile += kTile, buffer ^= 1) {
        start_keys(tile + kTile, buffer ^ 1);  // behind the end: zeros that nobody reads
        __pipeline_wait_prior(1);
        __syncthreads();
        Scores scores[F] = {};
        multiply_keys<T, D>(scores, q, shared.keys[buffer]);
#pragma unroll
        for (int f = 0; f < F; ++f) soften<D>(scores[f], rows[f], tile, args.scale_log2);
        multiply_values<T, D>(rows, scores, shared.values[buffer]);
        __syncthreads();  // all have read this buffer before the next step's copy overwrites it
    }
    __pipeline_wait_prior(0);
#pragma unroll
    for (int f = 0; f < F; ++f) write_rows<T, D>(args, rows[f], h, start, query + f * 16, n);
}

template <class T, int D>
void launch(Context& ctx, const AttentionArgs& args) {
    const dim3 grid(static_cast<unsigned>(ceil_div(args.max_queries, kQueries<D>)),
                    static_cast<unsigned>(args.heads), static_cast<unsigned>(args.sequences));
    constexpr int kBytes = sizeof(Shared<T, D>);
    CUDA_CHECK(cudaFuncSetAttribute(tile_kernel<T, D>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    kBytes));
    tile_kernel<T, D><<<grid, kThreads, kBytes, stream_of(ctx)>>>(args);
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void attention_by_tiles(Context& ctx, const AttentionArgs& args) {
    const bool half = args.cache_type == Dtype::f16, narrow = args.d <= 64;
    const auto chosen = half ? (narrow ? launch<__half, 64> : launch<__half, 128>)
                             : (narrow ? launch<__nv_bfloat16, 64> : launch<__nv_bfloat16, 128>);
    chosen(ctx, args);
}

}  // namespace hark::cuda
