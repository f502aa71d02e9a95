#include "kernels/attention/attention_kernels.cuh"
#include "kernels/cache/cache_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kChannels = 8;  // per head, read by one thread
constexpr int kSplit = 128;   // keys per block

// Grids of up to this many blocks are bound by latency: a thread requests all its reads at once.
// Before that, while the previous kernels run, it prefetches them to the L2 cache, or reads them if
// kv_ready. Larger grids are bound by bandwidth and run fastest with as many blocks as the GPU
// holds.
constexpr unsigned kFewBlocks = 512;

// A block's part of a query's result: D sums of p * v, then the maximum and the sum of p.
__device__ float* part_of(float* parts, const AttentionArgs& args, int splits, int row, int h,
                          int split) {
    return parts + ((int64_t{row} * args.heads + h) * splits + split) * (args.d + 2);
}

__device__ void write(const AttentionArgs& args, int row, int h, int c, float numerator,
                      float denominator) {
    const int64_t at = (int64_t{row} * args.heads + h) * args.d + c;
    store_any(args.out, args.out_type, at, denominator > 0 ? numerator / denominator : 0.0f);
}

// The maximum or the sum over the block; `shared` has one value per warp.
template <int Warps, class Combine>
__device__ float over_block(float x, float* shared, Combine combine) {
    for (int step = 16; step > 0; step /= 2) x = combine(x, __shfl_xor_sync(0xffffffff, x, step));
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    x = shared[0];
    for (int warp = 1; warp < Warps; ++warp) x = combine(x, shared[warp]);
    __syncthreads();
    return x;
}

// The keys or values of a block's range: key i belongs to group i % groups.
template <class T>
struct KeyLoader {
    const void* cache;
    int64_t first;  // of the thread's channels
    int d, group, count;
    bool has_channels;

    __device__ bool has(int key) const { return key < count && has_channels; }
    __device__ void load(CachePack<T>& to, int key) const {
        to.load(cache, first + int64_t{key} * d);
    }
    // N of them, those in [begin, end) of the range; the rest of `to` is unchanged.
    template <int N>
    __device__ void load_some(CachePack<T> (&to)[N], int begin, int end, int groups) const {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const int key = i * groups + group;
            if (has(key) && begin <= key && key < end) load(to[i], key);
        }
    }
};

template <class Q>
__device__ void load_query(float (&q)[kChannels], const void* all, int64_t at) {
    const Q* from = static_cast<const Q*>(all) + at;
    for (int c = 0; c < kChannels; ++c) q[c] = to_f32(from[c]);
}

// Block (split, h, row) with row = b * max_queries + j: 16 groups of G neighbouring threads, of
// which one group reads a key. Both ways add the same values in the same order.
template <class T, int G, bool Few>
__global__ void __launch_bounds__(16 * G)
    split_kernel(AttentionArgs args, float* parts, int splits) {
    let_next_start();
    constexpr int kThreads = 16 * G, kWarps = kThreads / 32;
    constexpr int kGroups = kThreads / G, kKeys = kSplit / kGroups;  // keys of a group
    __shared__ float scores[kSplit], shared[kWarps], sums[kWarps][kMostTiledHead];
    const int h = blockIdx.y, b = blockIdx.z / args.max_queries, j = blockIdx.z % args.max_queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    if (j >= n) return wait_for_previous();
    const int first = blockIdx.x * kSplit;
    const int count = max(0, min(args.visible(b, n, j) - first, kSplit));
    float* part = part_of(parts, args, splits, blockIdx.z, h, blockIdx.x);
    if (count == 0 && splits > 1) {  // same values as an empty part gets below
        wait_for_previous();
        for (int i = threadIdx.x; i < args.d + 2; i += kThreads)
            part[i] = i == args.d ? -INFINITY : 0.0f;
        return;
    }
    const int group = threadIdx.x / G, channel = threadIdx.x % G * kChannels;
    const bool has_channels = channel < args.d;
    const int64_t base = args.cache_offset(b, h) + int64_t{first} * args.d;
    if (Few && !args.kv_ready)
        for (int at = threadIdx.x * kCacheLine<T>; at < count * args.d;
             at += kThreads * kCacheLine<T>) {
            prefetch_cache<T>(args.keys, base + at);
            prefetch_cache<T>(args.values, base + at);
        }
    const KeyLoader<T> keys{args.keys, base + channel, args.d, group, count, has_channels};
    const KeyLoader<T> values{args.values, base + channel, args.d, group, count, has_channels};
    // Few blocks: the first keys and values; those that are ready are read before the wait.
    [[maybe_unused]] CachePack<T> loaded[kKeys], weighed[kKeys];
    const int ready = min(args.ready_keys(b, n) - first, count);
    if constexpr (Few) {
        keys.load_some(loaded, 0, ready, kGroups);
        values.load_some(weighed, 0, ready, kGroups);
    }
    wait_for_previous();
    if constexpr (Few) {
        keys.load_some(loaded, max(ready, 0), kSplit, kGroups);
        values.load_some(weighed, max(ready, 0), kSplit, kGroups);
    }

    float q[kChannels] = {};
    const int64_t query = int64_t{start + j} * args.q_stride + h * args.d + channel;
    if (has_channels) {
        if (args.q_type == Dtype::f16) {
            load_query<__half>(q, args.q, query);
        } else if (args.q_type == Dtype::bf16) {
            load_query<__nv_bfloat16>(q, args.q, query);
        } else {
            load_query<float>(q, args.q, query);
        }
    }
    if constexpr (Few) {
        // No branches: missing keys were loaded as zeros, so no key waits for another key's sum.
        float own[kKeys] = {};
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const Pack<float, kChannels> k = loaded[i].values();
            for (int c = 0; c < kChannels; ++c) own[i] = fmaf(q[c], k.values[c], own[i]);
        }
#pragma unroll
        for (int step = G / 2; step > 0; step /= 2)
#pragma unroll
            for (int i = 0; i < kKeys; ++i) own[i] += __shfl_xor_sync(0xffffffff, own[i], step);
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const int key = i * kGroups + group;
            if (threadIdx.x % G == 0)
                scores[key] = key < count ? own[i] * args.scale_log2 : -INFINITY;
        }
    } else {
#pragma unroll 4
        for (int i = 0; i < kKeys; ++i) {
            const int key = i * kGroups + group;
            float score = 0;
            if (keys.has(key)) {
                CachePack<T> pack;
                keys.load(pack, key);
                const Pack<float, kChannels> k = pack.values();
                for (int c = 0; c < kChannels; ++c) score = fmaf(q[c], k.values[c], score);
            }
            for (int step = G / 2; step > 0; step /= 2)
                score += __shfl_xor_sync(0xffffffff, score, step);
            if (threadIdx.x % G == 0)
                scores[key] = key < count ? score * args.scale_log2 : -INFINITY;
        }
    }
    __syncthreads();

    float largest = -INFINITY, sum = 0;
    for (int key = threadIdx.x; key < kSplit; key += kThreads)
        largest = fmaxf(largest, scores[key]);
    largest = over_block<kWarps>(largest, shared, [](float x, float y) { return fmaxf(x, y); });
    for (int key = threadIdx.x; key < kSplit; key += kThreads) {
        const float p = exp2_from(scores[key], largest);
        scores[key] = p;
        sum += p;
    }
    sum = over_block<kWarps>(sum, shared, [](float x, float y) { return x + y; });

    float acc[kChannels] = {};
    if constexpr (Few) {
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const float p = scores[i * kGroups + group];
            const Pack<float, kChannels> v = weighed[i].values();
            for (int c = 0; c < kChannels; ++c) acc[c] = fmaf(p, v.values[c], acc[c]);
        }
    } else {
#pragma unroll 4
        for (int i = 0; i < kKeys; ++i) {
            const int key = i * kGroups + group;
            if (!values.has(key)) continue;
            CachePack<T> pack;
            values.load(pack, key);
            const Pack<float, kChannels> v = pack.values();
            for (int c = 0; c < kChannels; ++c) acc[c] = fmaf(scores[key], v.values[c], acc[c]);
        }
    }
    for (int c = 0; c < kChannels; ++c)
        for (int step = 16; step >= G; step /= 2)
            acc[c] += __shfl_xor_sync(0xffffffff, acc[c], step);
    if (threadIdx.x % 32 < G)
        for (int c = 0; c < kChannels; ++c) sums[threadIdx.x / 32][channel + c] = acc[c];
    __syncthreads();

    for (int c = threadIdx.x; c < args.d; c += kThreads) {
        float total = 0;
        for (int warp = 0; warp < kWarps; ++warp) total += sums[warp][c];
        if (splits > 1) {
            part[c] = total;
        } else {  // same as combine_kernel
            write(args, start + j, h, c, total, sum);
        }
    }
    if (splits > 1 && threadIdx.x == 0) {
        part[args.d] = largest;
        part[args.d + 1] = sum;
    }
}

// Block (h, row): adds the parts of a query's result in their order, scaled to their common
// maximum. Missing parts have weight zero. Shared memory: two floats per part.
__global__ void __launch_bounds__(kMostTiledHead)
    combine_kernel(AttentionArgs args, float* parts, int splits) {
    let_next_start();
    extern __shared__ float weights[];
    __shared__ float shared[kMostTiledHead / 32];
    float* sums = weights + splits;
    const int h = blockIdx.x, b = blockIdx.y / args.max_queries, j = blockIdx.y % args.max_queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    const int c = threadIdx.x, stride = args.d + 2;
    wait_for_previous();
    if (j >= n) return;
    const float* part = part_of(parts, args, splits, blockIdx.y, h, 0);
    constexpr int kFirst = 12;  // requested at once: 1500 keys are 12 parts
    float values[kFirst];
#pragma unroll
    for (int s = 0; s < kFirst; ++s)
        values[s] = s < splits && c < args.d ? part[s * stride + c] : 0;
    float largest = -INFINITY, numerator = 0, denominator = 0;
    for (int s = threadIdx.x; s < splits; s += kMostTiledHead) {
        weights[s] = part[s * stride + args.d];
        sums[s] = part[s * stride + args.d + 1];
        largest = fmaxf(largest, weights[s]);
    }
    largest = over_block<kMostTiledHead / 32>(largest, shared,
                                              [](float x, float y) { return fmaxf(x, y); });
    for (int s = threadIdx.x; s < splits; s += kMostTiledHead)
        weights[s] = exp2_from(weights[s], largest);
    __syncthreads();
    if (c >= args.d) return;
    const auto add = [&](int s, float value) {
        numerator += weights[s] * value;
        denominator += weights[s] * sums[s];
    };
#pragma unroll
    for (int s = 0; s < kFirst; ++s)
        if (s < splits) add(s, values[s]);
#pragma unroll 8
    for (int s = kFirst; s < splits; ++s) add(s, part[s * stride + c]);
    write(args, start + j, h, c, numerator, denominator);
}

}  // namespace

void attention_decode_split_k(Context& ctx, const AttentionArgs& args) {
    const Arena::Scope scope(ctx.arena);
    const int splits = static_cast<int>(std::max<int64_t>(1, ceil_div(args.max_length, kSplit)));
    const auto rows = static_cast<unsigned>(args.sequences * args.max_queries);
    float* parts = ctx.arena.tensor(Dtype::f32, {rows, args.heads, splits, args.d + 2}).as<float>();
    const dim3 grid(static_cast<unsigned>(splits), static_cast<unsigned>(args.heads), rows);
    const bool few = int64_t{grid.x} * grid.y * grid.z <= kFewBlocks;
    with_cache_type(args.cache_type, [&](auto type) {
        using T = decltype(type);
        const auto launch = [&](auto kernel, int lanes_per_key) {
            launch_early(ctx, kernel, grid, 16 * lanes_per_key, 0, args, parts, splits);
        };
        if (args.d <= 64)
            return launch(few ? split_kernel<T, 8, true> : split_kernel<T, 8, false>, 8);
        launch(few ? split_kernel<T, 16, true> : split_kernel<T, 16, false>, 16);
    });
    if (splits == 1) return;
    launch_early(ctx, combine_kernel, dim3(grid.y, rows), kMostTiledHead,
                 2 * static_cast<size_t>(splits) * sizeof(float), args, parts, splits);
}

}  // namespace hark::cuda
