#include "kernels/attention/attention_kernels.cuh"
#include "kernels/kv_cache/cache_rows.cuh"
#include "kernels/cuda/hopper.cuh"

namespace hark::cuda {
namespace {

constexpr int kAcross = 16;  // threads side by side: over the keys, then over the channels
constexpr int kRows = 2;     // queries per thread
constexpr int kWideHead = 256;

// A tile for heads of up to kHead channels. The shared memory of every GPU has room for it; for
// wider heads than kWideHead if keys and values are one cache.
template <int kHead>
struct SimtTile {
    static constexpr int kQueries = kHead > kWideHead ? 16 : 32;
    static constexpr int kKeys = kHead > kMostTiledHead ? 16 : 64;
    static constexpr int kThreads = kAcross * kQueries / kRows;

    // Rows have an odd length: threads at the same column of neighbouring rows hit different banks.
    static int shared_bytes(int d, bool one_cache) {
        const int caches = one_cache ? 1 : 2;
        return static_cast<int>(sizeof(float)) *
               ((kQueries + caches * kKeys) * (d + 1) + kQueries * (kKeys + 1));
    }
};

// Reduces over the 16 threads that have a query's columns.
template <class Combine>
__device__ float over_row(float x, Combine combine) {
    for (int step = kAcross / 2; step > 0; step /= 2)
        x = combine(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

// to (kKeys, d + 1) = rows [first, end) of a cache, of head h of sequence b; zeros after the end.
template <class Tile, class T>
__device__ void load_rows(float* to, const AttentionArgs& args, const void* cache, int b, int h,
                          int first, int end) {
    const int d = args.d;
    for (int i = threadIdx.x; i < Tile::kKeys * d; i += Tile::kThreads) {
        const int row = i / d, c = i % d;
        // Below 0: a block before the window, which the cache has given back.
        const int64_t begin = first + row < end ? args.key_offset(b, h, first + row) : -1;
        to[row * (d + 1) + c] = begin >= 0 ? cache_value<T>(cache, begin + c) : 0.0f;
    }
}

// Block (tile of queries, h, b).
template <class T, int kHead>
__global__ void __launch_bounds__(SimtTile<kHead>::kThreads) f32_kernel(AttentionArgs args) {
    using Tile = SimtTile<kHead>;
    constexpr int kKeys = Tile::kKeys, kColumns = kKeys / kAcross, kChannels = kHead / kAcross;
    extern __shared__ float simt_memory[];
    const int d = args.d, width = d + 1, h = blockIdx.y, b = blockIdx.z;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int first = blockIdx.x * Tile::kQueries;
    if (first >= n) return;
    const bool one_cache = args.keys == args.values;
    float* q = simt_memory;                    // (kQueries, width)
    float* keys = q + Tile::kQueries * width;  // (kKeys, width)
    float* values = one_cache ? keys : keys + kKeys * width;
    float* ps = values + kKeys * width;  // (kQueries, kKeys + 1)
    const int across = threadIdx.x % kAcross, down = threadIdx.x / kAcross * kRows;

    for (int i = threadIdx.x; i < Tile::kQueries * d; i += Tile::kThreads) {
        const int row = i / d, c = i % d;
        const int64_t at = int64_t{start + first + row} * args.q_stride + h * d + c;
        q[row * width + c] = first + row < n ? load_any(args.q, args.q_type, at) : 0.0f;
    }
    int firsts[kRows], limits[kRows];
    float largest[kRows], sums[kRows] = {}, acc[kRows][kChannels] = {};
    for (int r = 0; r < kRows; ++r) {
        limits[r] = first + down + r < n ? args.visible(b, n, first + down + r) : 0;
        firsts[r] = first + down + r < n ? args.first_key(b, n, first + down + r) : 0;
        largest[r] = -INFINITY;
    }
    const int end = args.visible(b, n, min(first + Tile::kQueries, n) - 1);
    // Tiles begin at multiples of kKeys, whatever the block's first query is.
    for (int tile = args.first_key(b, n, first) / kKeys * kKeys; tile < end; tile += kKeys) {
        __syncthreads();
        load_rows<Tile, T>(keys, args, args.keys, b, h, tile, end);
        if (!one_cache) load_rows<Tile, T>(values, args, args.values, b, h, tile, end);
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
                const int key = tile + across + k * kAcross;
                scores[r][k] =
                    firsts[r] <= key && key < limits[r] ? args.score(scores[r][k]) : -INFINITY;
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
        const float sum =
            over_row(sums[r], [](float x, float y) { return x + y; }) + args.sink(h, largest[r]);
        const int64_t row = int64_t{start + first + down + r} * args.heads + h;
        for (int c = 0; c < kChannels; ++c)
            if (first + down + r < n && across + c * kAcross < d)
                store_any(args.out, args.out_type, row * d + across + c * kAcross,
                          sum > 0 ? acc[r][c] / sum : 0.0f);
    }
}

template <class T, int kHead>
void launch_simt(Context& ctx, const AttentionArgs& args) {
    using Tile = SimtTile<kHead>;
    const dim3 grid(static_cast<unsigned>(ceil_div(args.max_queries, Tile::kQueries)),
                    static_cast<unsigned>(args.heads), static_cast<unsigned>(args.sequences));
    const int bytes = Tile::shared_bytes(args.d, args.keys == args.values);
    require(bytes <= shared_limit(), "attention: a block of this GPU has ", shared_limit(),
            " bytes of shared memory; many queries of heads of ", args.d, " channels need ", bytes);
    const auto kernel = f32_kernel<T, kHead>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<grid, Tile::kThreads, bytes, stream_of(ctx)>>>(args);
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void attention_simt(Context& ctx, const AttentionArgs& args) {
    with_cache_type(args.cache_type, [&](auto type) {
        using T = decltype(type);
        if (args.d <= kMostTiledHead) return launch_simt<T, kMostTiledHead>(ctx, args);
        if (args.d <= kWideHead) return launch_simt<T, kWideHead>(ctx, args);
        launch_simt<T, kMostHeadChannels>(ctx, args);
    });
}

}  // namespace hark::cuda
