#include "kernels/attention/decode_parts.cuh"
#include "kernels/kv_cache/cache_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kChannels = 8;  // that a thread reads at once

// The keys or values of a block's range, which the query sees from `begin` to `end`: key i belongs
// to group i % groups.
template <class T>
struct KeyLoader {
    const void* cache;
    KeyRows rows;
    int first, channel, group, begin, end;  // first: key of the range; channel: the thread's first
    bool has_channels;

    __device__ bool has(int key) const { return begin <= key && key < end && has_channels; }
    // The channels `further` than the thread's first ones.
    __device__ void load(CachePack<T>& to, int key, int further = 0) const {
        to.load(cache, rows(first + key) + channel + further);
    }
    // N of them, those in [first, last) of the range; the rest of `to` is unchanged.
    template <int N>
    __device__ void load_some(CachePack<T> (&to)[N], int first, int last, int groups) const {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const int key = i * groups + group;
            if (has(key) && first <= key && key < last) load(to[i], key);
        }
    }
};

// Groups of a block whose threads read P packs of each key.
template <int P>
constexpr int kGroupsOf = P == 1 ? 16 : 8;

template <class Q>
__device__ void load_query(float (&q)[kChannels], const void* all, int64_t at) {
    const Q* from = static_cast<const Q*>(all) + at;
    for (int c = 0; c < kChannels; ++c) q[c] = to_f32(from[c]);
}

// The channels of a head's query that a thread has: from `channel` on, which is at `at`, kPass
// apart.
template <int P, int kPass>
__device__ void load_passes(float (&q)[P][kChannels], const AttentionArgs& args, int64_t at,
                            int channel) {
#pragma unroll
    for (int pass = 0; pass < P; ++pass) {
        if (channel + pass * kPass >= args.d) break;
        if (args.q_type == Dtype::f16) {
            load_query<__half>(q[pass], args.q, at + pass * kPass);
        } else if (args.q_type == Dtype::bf16) {
            load_query<__nv_bfloat16>(q[pass], args.q, at + pass * kPass);
        } else {
            load_query<float>(q[pass], args.q, at + pass * kPass);
        }
    }
}

// Prefetches keys and values from element `at` of the cache to `end`, by all threads of a block.
template <class T, int Threads>
__device__ void prefetch_keys(const AttentionArgs& args, int64_t at, int64_t end) {
#pragma unroll 1
    for (at += threadIdx.x * kCacheLine<T>; at < end; at += Threads * kCacheLine<T>) {
        prefetch_cache<T>(args.keys, at);
        prefetch_cache<T>(args.values, at);
    }
}

// Block (split, h, row) with row = b * max_queries + j: groups of G neighbouring threads, of which
// one group reads a key, each thread P packs of channels. Splits begin at multiples of kSplit, the
// first one where the query's window begins. Up to kFewBlocks are bound by latency: a thread
// requests all its reads at once, and before that, while the previous kernels run, it prefetches
// them to the L2 cache, or reads them if kv_ready. More are bound by bandwidth and run fastest with
// as many blocks as the GPU holds. Both ways add the same values in the same order.
template <class T, int G, int P, bool Few>
__global__ void __launch_bounds__(kGroupsOf<P>* G)
    split_kernel(AttentionArgs args, float* parts, int splits) {
    pdl_trigger();
    static_assert(P == 1 || !Few);
    constexpr int kGroups = kGroupsOf<P>, kThreads = kGroups * G, kWarps = kThreads / 32;
    constexpr int kKeys = kSplit / kGroups;  // keys of a group
    constexpr int kPass = kChannels * G;     // channels of a group's threads at once
    __shared__ float scores[kSplit], shared[kWarps], sums[kWarps][kPass * P];
    const auto queries = static_cast<unsigned>(args.max_queries);
    const int h = blockIdx.y, b = blockIdx.z / queries, j = blockIdx.z % queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    if (j >= n) return pdl_wait();
    const int first_key = args.first_key(b, n, j);
    const int first = (first_key / kSplit + blockIdx.x) * kSplit;
    const int begin = max(first_key - first, 0);
    const int end = max(0, min(args.visible(b, n, j) - first, kSplit));
    float* part = part_of(parts, args, splits, blockIdx.z, h, blockIdx.x);
    if (end == 0 && splits > 1) {  // same values as an empty part gets below
        pdl_wait();
        return write_no_keys<kThreads>(part, args.d);
    }
    const int group = threadIdx.x / G, channel = threadIdx.x % G * kChannels;
    const bool has_channels = channel < args.d;
    const KeyRows rows = args.key_rows(b, h);
    const int64_t base = rows.head + int64_t{first} * args.d;
    if (Few && !args.kv_ready && args.blocks == 1)
        prefetch_keys<T, kThreads>(args, base + begin * args.d, base + end * args.d);
    const KeyLoader<T> keys{args.keys, rows, first, channel, group, begin, end, has_channels};
    const KeyLoader<T> values{args.values, rows, first, channel, group, begin, end, has_channels};
    // Few blocks: the first keys and values; those that are ready are read before the wait.
    [[maybe_unused]] CachePack<T> loaded[kKeys], weighed[kKeys];
    const int ready = min(args.ready_keys(b, n) - first, end);
    if constexpr (Few) {
        keys.load_some(loaded, 0, ready, kGroups);
        values.load_some(weighed, 0, ready, kGroups);
    }
    pdl_wait();
    if constexpr (Few) {
        keys.load_some(loaded, max(ready, 0), kSplit, kGroups);
        values.load_some(weighed, max(ready, 0), kSplit, kGroups);
    }
    float q[P][kChannels] = {};
    load_passes<P, kPass>(q, args, int64_t{start + j} * args.q_stride + h * args.d + channel,
                          channel);
    const auto has_pass = [&](int pass) { return channel + pass * kPass < args.d; };
    if constexpr (Few) {
        // No branches: missing keys were loaded as zeros, so no key waits for another key's sum.
        float own[kKeys] = {};
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const Pack<float, kChannels> k = loaded[i].values();
            for (int c = 0; c < kChannels; ++c) own[i] = fmaf(q[0][c], k.values[c], own[i]);
        }
#pragma unroll
        for (int step = G / 2; step > 0; step /= 2)
#pragma unroll
            for (int i = 0; i < kKeys; ++i) own[i] += __shfl_xor_sync(0xffffffff, own[i], step);
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const int key = i * kGroups + group;
            if (threadIdx.x % G == 0)
                scores[key] = begin <= key && key < end ? args.score(own[i]) : -INFINITY;
        }
    } else {
#pragma unroll 4
        for (int i = 0; i < kKeys; ++i) {
            const int key = i * kGroups + group;
            float score = 0;
#pragma unroll
            for (int pass = 0; pass < P; ++pass) {
                if (!keys.has(key) || !has_pass(pass)) break;
                CachePack<T> pack;
                keys.load(pack, key, pass * kPass);
                const Pack<float, kChannels> k = pack.values();
                for (int c = 0; c < kChannels; ++c) score = fmaf(q[pass][c], k.values[c], score);
            }
            for (int step = G / 2; step > 0; step /= 2)
                score += __shfl_xor_sync(0xffffffff, score, step);
            if (threadIdx.x % G == 0)
                scores[key] = begin <= key && key < end ? args.score(score) : -INFINITY;
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

    float acc[P][kChannels] = {};
    if constexpr (Few) {
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const float p = scores[i * kGroups + group];
            const Pack<float, kChannels> v = weighed[i].values();
            for (int c = 0; c < kChannels; ++c) acc[0][c] = fmaf(p, v.values[c], acc[0][c]);
        }
    } else {
#pragma unroll 4
        for (int i = 0; i < kKeys; ++i) {
            const int key = i * kGroups + group;
            if (!values.has(key)) continue;
#pragma unroll
            for (int pass = 0; pass < P; ++pass) {
                if (!has_pass(pass)) break;
                CachePack<T> pack;
                values.load(pack, key, pass * kPass);
                const Pack<float, kChannels> v = pack.values();
                for (int c = 0; c < kChannels; ++c)
                    acc[pass][c] = fmaf(scores[key], v.values[c], acc[pass][c]);
            }
        }
    }
#pragma unroll
    for (int pass = 0; pass < P; ++pass) {
        for (int c = 0; c < kChannels; ++c)
            for (int step = 16; step >= G; step /= 2)
                acc[pass][c] += __shfl_xor_sync(0xffffffff, acc[pass][c], step);
        if (threadIdx.x % 32 < G)
            for (int c = 0; c < kChannels; ++c)
                sums[threadIdx.x / 32][pass * kPass + channel + c] = acc[pass][c];
    }
    __syncthreads();

#pragma unroll 1
    for (int c = threadIdx.x; c < args.d; c += kThreads) {
        float total = 0;
        for (int warp = 0; warp < kWarps; ++warp) total += sums[warp][c];
        if (splits > 1) {
            part[c] = total;
        } else {  // same as combine_kernel
            write_result(args, start + j, h, c, total, sum + args.sink(h, largest));
        }
    }
    if (splits > 1 && threadIdx.x == 0) {
        part[args.d] = largest;
        part[args.d + 1] = sum;
    }
}

}  // namespace

void attention_decode_split_k(Context& ctx, const AttentionArgs& args) {
    const Arena::Scope scope(ctx.arena);
    const int splits = key_splits(args, kSplit);
    const auto rows = static_cast<unsigned>(args.sequences * args.max_queries);
    float* parts = ctx.arena.tensor(Dtype::f32, {rows, args.heads, splits, args.d + 2}).as<float>();
    const dim3 grid(static_cast<unsigned>(splits), static_cast<unsigned>(args.heads), rows);
    const bool few = int64_t{grid.x} * grid.y * grid.z <= kFewBlocks;
    if (few && attention_decode_plain(ctx, args, parts, splits))
        return combine_parts(ctx, args, parts, splits);
    with_cache_type(args.cache_type, [&](auto type) {
        using T = decltype(type);
        const auto launch = [&](auto kernel, int threads) {
            pdl_launch(ctx, kernel, grid, threads, 0, args, parts, splits);
        };
        if (args.d <= 64)
            return launch(few ? split_kernel<T, 8, 1, true> : split_kernel<T, 8, 1, false>, 128);
        if (args.d <= 128)
            return launch(few ? split_kernel<T, 16, 1, true> : split_kernel<T, 16, 1, false>, 256);
        if (args.d <= 256) {
            // 512 threads have no registers for that many keys of four bytes.
            constexpr bool kFew = !std::is_same_v<T, float>;
            return launch(few ? split_kernel<T, 32, 1, kFew> : split_kernel<T, 32, 1, false>, 512);
        }
        static_assert(kMostHeadChannels <= 3 * 256 && kMostHeadChannels % 32 == 0);
        launch(split_kernel<T, 32, 3, false>, 256);
    });
    combine_parts(ctx, args, parts, splits);
}

}  // namespace hark::cuda
