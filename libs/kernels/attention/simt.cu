#include "kernels/attention/attention_kernels.cuh"

namespace hark::cuda {
namespace {

constexpr int kQueries = 32, kKeys = 64;
constexpr int kAcross = 16;  // threads side by side: over the keys, then over the channels
constexpr int kThreads = kAcross * kQueries / 2;
constexpr int kRows = 2;  // queries per thread
constexpr int kColumns = kKeys / kAcross;
constexpr int kChannels = kMostHeadChannels / kAcross;

// Rows have an odd length: threads at the same column of neighbouring rows hit different banks.
int shared_bytes(int d) {
    return static_cast<int>(sizeof(float)) *
           (kQueries * (d + 1) + 2 * kKeys * (d + 1) + kQueries * (kKeys + 1));
}

// Reduces over the 16 threads that have a query's columns.
template <class Combine>
__device__ float over_row(float x, Combine combine) {
    for (int step = kAcross / 2; step > 0; step /= 2)
        x = combine(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

// to (rows, d + 1) = rows [first, end) of a cache; zeros after the end.
template <class T>
__device__ void load_rows(float* to, const T* from, int first, int end, int d) {
    for (int i = threadIdx.x; i < kKeys * d; i += kThreads) {
        const int row = i / d, c = i % d;
        to[row * (d + 1) + c] =
            first + row < end ? to_f32(from[int64_t{first + row} * d + c]) : 0.0f;
    }
}

// Block (tile of queries, h, b).
template <class T>
__global__ void __launch_bounds__(kThreads) f32_kernel(AttentionArgs args) {
    extern __shared__ float shared[];
    const int d = args.d, width = d + 1, h = blockIdx.y, b = blockIdx.z;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int first = blockIdx.x * kQueries;
    if (first >= n) return;
    float* q = shared;                     // (kQueries, width)
    float* keys = q + kQueries * width;    // (kKeys, width)
    float* values = keys + kKeys * width;  // (kKeys, width)
    float* ps = values + kKeys * width;    // (kQueries, kKeys + 1)
    const int across = threadIdx.x % kAcross, down = threadIdx.x / kAcross * kRows;

    for (int i = threadIdx.x; i < kQueries * d; i += kThreads) {
        const int row = i / d, c = i % d;
        const int64_t at = int64_t{start + first + row} * args.q_stride + h * d + c;
        q[row * width + c] = first + row < n ? load_any(args.q, args.q_type, at) : 0.0f;
    }
    int limits[kRows];
    float largest[kRows], sums[kRows] = {}, acc[kRows][kChannels] = {};
    for (int r = 0; r < kRows; ++r) {
        limits[r] = first + down + r < n ? args.visible(b, n, first + down + r) : 0;
        largest[r] = -INFINITY;
    }
    const int end = args.visible(b, n, min(first + kQueries, n) - 1);
    const int64_t base = args.cache_offset(b, h);

    for (int tile = 0; tile < end; tile += kKeys) {
        __syncthreads();
        load_rows(keys, static_cast<const T*>(args.keys) + base, tile, end, d);
        load_rows(values, static_cast<const T*>(args.values) + base, tile, end, d);
        __syncthreads();
        float scores[kRows][kColumns] = {};
        for (int c = 0; c < d; ++c)
            for (int r = 0; r < kRows; ++r)
                for (int k = 0; k < kColumns; ++k)
                    scores[r][k] = fmaf(q[(down + r) * width + c],
                                        keys[(across + k * kAcross) * width + c], scores[r][k]);
        for (int r = 0; r < kRows; ++r) {
            float highest = largest[r];
            for (int k = 0; k < kColumns; ++k) {
                const bool seen = tile + across + k * kAcross < limits[r];
                scores[r][k] = seen ? scores[r][k] * args.scale_log2 : -INFINITY;
                highest = fmaxf(highest, scores[r][k]);
            }
            highest = over_row(highest, [](float x, float y) { return fmaxf(x, y); });
            const float kept = exp2_from(largest[r], highest);
            largest[r] = highest;
            sums[r] *= kept;
            for (float& a : acc[r]) a *= kept;
            for (int k = 0; k < kColumns; ++k) {
                const float p = exp2_from(scores[r][k], highest);
                sums[r] += p;
                ps[(down + r) * (kKeys + 1) + across + k * kAcross] = p;
            }
        }
        __syncwarp();  // a query's probabilities come from its own half of the warp
        for (int key = 0; key < kKeys; ++key)
            for (int c = 0; c < kChannels; ++c) {
                if (across + c * kAcross >= d) break;
                const float v = values[key * width + across + c * kAcross];
                for (int r = 0; r < kRows; ++r)
                    acc[r][c] = fmaf(ps[(down + r) * (kKeys + 1) + key], v, acc[r][c]);
            }
    }
    for (int r = 0; r < kRows; ++r) {
        const float sum = over_row(sums[r], [](float x, float y) { return x + y; });
        const int64_t row = int64_t{start + first + down + r} * args.heads + h;
        for (int c = 0; c < kChannels; ++c)
            if (first + down + r < n && across + c * kAcross < d)
                store_any(args.out, args.out_type, row * d + across + c * kAcross,
                          sum > 0 ? acc[r][c] / sum : 0.0f);
    }
}

}  // namespace

void attention_simt(Context& ctx, const AttentionArgs& args) {
    const dim3 grid(static_cast<unsigned>(ceil_div(args.max_queries, kQueries)),
                    static_cast<unsigned>(args.heads), static_cast<unsigned>(args.sequences));
    const int bytes = shared_bytes(args.d);
    with_float_type(args.cache_type, [&](auto type) {
        const auto kernel = f32_kernel<decltype(type)>;
        CUDA_CHECK(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
        kernel<<<grid, kThreads, bytes, stream_of(ctx)>>>(args);
    });
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace hark::cuda
