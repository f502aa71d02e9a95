// One query each of heads that share keys: they are the rows of one product on the matrix units, so
// that keys and values are read once for all of them.
#include "kernels/attention/decode_new_rows.cuh"
#include "kernels/attention/decode_parts.cuh"
#include "kernels/cuda/mma.cuh"

namespace hark::cuda {
namespace {

constexpr int kWarpKeys = kGroupedBlock;       // so they are within one block of a block table
constexpr int kGroupRows = kMostGroupedHeads;  // of the 16 of a fragment; the others stay zero
static_assert(kGroupRows == 8 && kWarpKeys == 32);
// Warps of a block; and if all keys of a query are in one block of kWholeWarps, which no kernel has
// to combine, unless a row's bits must not depend on how many rows there are.
constexpr int kManyWarps = kSplit / kWarpKeys, kWholeWarps = 8;

using Words = uint32_t[4];  // 8 channels

__device__ inline void load_words(Words& to, const void* from) {
    const uint4 all = *static_cast<const uint4*>(from);
    to[0] = all.x, to[1] = all.y, to[2] = all.z, to[3] = all.w;
}

// What a warp adds up over its keys; row: the head's number in its group.
template <int D>
struct alignas(16) WarpSums {
    float largest[kGroupRows], sum[kGroupRows];
    float values[kGroupRows][D];
};

// The keys and values of a warp, in the fragments of mma.m16n8k16. Lane 4 g + t. A sum over
// channels may take them in any order, so a lane's 8 neighbouring ones are the columns 2t, 2t + 1,
// 2t + 8 and 2t + 9 of two products. Tile j of the values' product has the channels 8 g + j.
template <class T, int D>
struct WarpKeys {
    Words keys[kWarpKeys / 8][D / 32];        // key 8 n + g; channels 32 c + 8 t on
    Words values[kWarpKeys / 16][4][D / 64];  // key 16 s + 2t + {0, 1, 8, 9}; 64 u + 8 g on
    float scores[kWarpKeys / 8][4];           // row g; keys 8 n + 2t and 8 n + 2t + 1

    // Keys [begin, end) of the warp's, whose first one is at `first`; the others become zero.
    __device__ void load(const AttentionArgs& args, int64_t first, int begin, int end) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const auto row = [&](const void* cache, int key) {
            return static_cast<const T*>(cache) + first + key * D;
        };
#pragma unroll
        for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
            for (int c = 0; c < D / 32; ++c) {
                const int key = 8 * n + g;
                Words& to = keys[n][c];
                to[0] = to[1] = to[2] = to[3] = 0;
                if (begin <= key && key < end) load_words(to, row(args.keys, key) + 32 * c + 8 * t);
            }
#pragma unroll
        for (int s = 0; s < kWarpKeys / 16; ++s)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int u = 0; u < D / 64; ++u) {
                    const int key = 16 * s + 2 * t + i / 2 * 8 + i % 2;
                    Words& to = values[s][i][u];
                    to[0] = to[1] = to[2] = to[3] = 0;
                    if (begin <= key && key < end)
                        load_words(to, row(args.values, key) + 64 * u + 8 * g);
                }
    }

    // In place of key `newest` of the warp's, which is not loaded.
    __device__ void put(int newest, const NewRows<T, D>& rows) {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
            for (int c = 0; c < D / 32; ++c)
                if (8 * n + g == newest) load_words(keys[n][c], rows.key + 32 * c + 8 * t);
#pragma unroll
        for (int s = 0; s < kWarpKeys / 16; ++s)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int u = 0; u < D / 64; ++u)
                    if (16 * s + 2 * t + i / 2 * 8 + i % 2 == newest)
                        load_words(values[s][i][u], rows.value + 64 * u + 8 * g);
    }

    // Scores of row g, whose channels 32 c + 8 t on are q[c].
    __device__ void multiply_keys(const Words (&q)[D / 32]) {
#pragma unroll
        for (auto& row : scores)
            for (float& score : row) score = 0;
#pragma unroll
        for (int c = 0; c < D / 32; ++c)
#pragma unroll
            for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
                for (int half = 0; half < 4; half += 2)
                    mma(T{}, scores[n], q[c][half], 0, q[c][half + 1], 0, keys[n][c][half],
                        keys[n][c][half + 1]);
    }

    // The scores become p; returns the row's largest score and its sum of p.
    __device__ float2 soften(const AttentionArgs& args, int begin, int end) {
        const int t = threadIdx.x % 4;
        float largest = -INFINITY, sum = 0;
        if (args.soft_cap > 0) {  // one branch around all of this code, not one per score
#pragma unroll
            for (auto& row : scores)
                for (int i = 0; i < 2; ++i) row[i] = args.score(row[i]);
        } else {
#pragma unroll
            for (auto& row : scores)
                for (int i = 0; i < 2; ++i) row[i] *= args.scale_log2;
        }
#pragma unroll
        for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int key = 8 * n + 2 * t + i;
                float& score = scores[n][i];
                score = begin <= key && key < end ? score : -INFINITY;
                largest = fmaxf(largest, score);
            }
        for (int step = 1; step <= 2; step *= 2)
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
#pragma unroll
        for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                scores[n][i] = exp2_from(scores[n][i], largest);
                sum += scores[n][i];
            }
        for (int step = 1; step <= 2; step *= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
        return {largest, sum};
    }

    // row = row * kept + weight * sum of p * v, of row g: a lane has the channels 64 u + 16 t on,
    // 16 of them. If kept is 0, what the row has is not read.
    __device__ void add_values(float (&row)[D], float kept, float weight) {
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int u = 0; u < D / 64; ++u) {
            float sums[8][4] = {};
#pragma unroll
            for (int s = 0; s < kWarpKeys / 16; ++s) {
                const uint32_t first = pack(T{}, scores[2 * s][0], scores[2 * s][1]);
                const uint32_t second = pack(T{}, scores[2 * s + 1][0], scores[2 * s + 1][1]);
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const unsigned halves = j % 2 == 0 ? 0x5410 : 0x7632;
                    const auto pair = [&](int i) {
                        return __byte_perm(values[s][i][u][j / 2], values[s][i + 1][u][j / 2],
                                           halves);
                    };
                    mma(T{}, sums[j], first, 0, second, 0, pair(0), pair(2));
                }
            }
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 8; j += 4) {
                    auto& four = *reinterpret_cast<float4*>(&row[64 * u + 16 * t + 8 * i + j]);
                    const float4 had = kept > 0 ? four : float4{};
                    four = {fmaf(had.x, kept, weight * sums[j][i]),
                            fmaf(had.y, kept, weight * sums[j + 1][i]),
                            fmaf(had.z, kept, weight * sums[j + 2][i]),
                            fmaf(had.w, kept, weight * sums[j + 3][i])};
                }
        }
    }
};

// A lane's channels of a query: 32 c + 8 t on.
template <int N>
__device__ void load_group_query(Words (&q)[N], const void* query) {
#pragma unroll
    for (int c = 0; c < N; ++c)
        load_words(q[c], static_cast<const uint16_t*>(query) + threadIdx.x % 4 * 8 + 32 * c);
}

// Adds what the warps have left of a head, in their order.
template <int D, int Warps>
__device__ void add_warps(const AttentionArgs& args, const WarpSums<D> (&warps)[Warps], int heads,
                          int first_head, int row, float* part, int64_t part_stride) {
    for (int i = threadIdx.x; i < heads * D; i += 32 * Warps) {
        const int head = i / D, c = i % D;
        float largest = -INFINITY, value = 0, sum = 0;
        for (const WarpSums<D>& warp : warps) largest = fmaxf(largest, warp.largest[head]);
        for (const WarpSums<D>& warp : warps) {
            const float weight = exp2_from(warp.largest[head], largest);
            value += weight * warp.values[head][c];
            sum += weight * warp.sum[head];
        }
        if (!part) {
            const int h = first_head + head;
            write_result(args, row, h, c, value, sum + args.sink(h, largest));
            continue;
        }
        float* const own = part + head * part_stride;
        own[c] = value;
        if (c == 0) own[D] = largest, own[D + 1] = sum;
    }
}

// Blocks that a multiprocessor should hold at least; a small grid needs fewer. At D 64 a block of
// kWholeWarps then fits next to one of the product before it.
template <int D, int Warps, bool New>
constexpr int kBlocksAtOnce = Warps > kManyWarps ? (D == 64 && New ? 2 : 1)
                              : New              ? 2
                              : D == 64          ? 4
                                                 : 3;

// Block (part, key head, row) with row = b * max_queries + j: `chunks` times the keys of all its
// warps. New: fresh has the rows, one per sequence, and their keys are not in the cache yet.
template <class T, int D, int Warps, bool New>
__global__ void __launch_bounds__(32 * Warps, kBlocksAtOnce<D, Warps, New>)
    grouped_kernel(AttentionArgs args, NewRowArgs fresh, float* all_parts, int parts, int chunks) {
    pdl_trigger();
    constexpr int kThreads = 32 * Warps, kKeys = kWarpKeys * Warps;
    __shared__ WarpSums<D> warps[Warps];
    [[maybe_unused]] __shared__ NewRows<T, D> rows_of_block;
    const int b = blockIdx.z / args.max_queries, j = blockIdx.z % args.max_queries;
    const int start = args.query_start[b], n = args.query_start[b + 1] - start;
    if (j >= n) return pdl_wait();
    const int heads = args.heads / args.kv_heads, first_head = blockIdx.y * heads;
    const int first_key = args.first_key(b, n, j), visible = args.visible(b, n, j);
    const int first = (first_key / kKeys + blockIdx.x * chunks) * kKeys;
    const int limit = min(visible, first + chunks * kKeys);
    float* part = part_of(all_parts, args, parts, blockIdx.z, first_head, blockIdx.x);
    const int64_t part_stride = int64_t{parts} * (D + 2);
    if (first >= limit && parts > 1) {
        pdl_wait();
        for (int head = 0; head < heads; ++head)
            write_no_keys<kThreads>(part + head * part_stride, D);
        return;
    }
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const KeyRows rows = args.key_rows(b, first_head);
    const int stored = visible - New;  // keys that the cache has
    const int ready = args.ready_keys(b, n);
    const auto wait = [&] {
        if constexpr (New) {
            const Turns<2> by(fresh.rope, threadIdx.x % (D / 4) * 2, fresh.rope.position[start]);
            const bool has_newest = limit == visible;
            const int64_t newest = has_newest ? newest_place(fresh.rope, b, blockIdx.y) : -1;
            pdl_wait();
            rows_of_block.template load<kThreads>(fresh, start, first_head, heads, blockIdx.y,
                                                  has_newest, newest, by);
            __syncthreads();
        } else {
            pdl_wait();
        }
    };
    const int from = first + warp * kWarpKeys;
    float2 all = {-INFINITY, 0};                                       // largest score, sum of p
    for (int own = from; own == from || own < limit; own += kKeys) {   // own: the warp's first key
        const int begin = max(first_key - own, 0), end = min(limit - own, kWarpKeys);
        const int loaded = min(end, stored - own);
        const bool is_early = own != from || own + loaded <= ready;
        WarpKeys<T, D> keys;
        // A loop, so that the code of both is there once.
#pragma unroll 1
        for (const bool early : {true, false}) {
            if (early == is_early && begin < end) keys.load(args, rows(own), begin, loaded);
            if (early && own == from) wait();
        }
        if (begin >= end) continue;
        Words q[D / 32] = {};
        if constexpr (New) {
            if (loaded < end) keys.put(loaded, rows_of_block);
            if (g < heads) load_group_query(q, rows_of_block.queries[g]);
        } else if (g < heads) {
            load_group_query(q, static_cast<const T*>(args.q) + (start + j) * args.q_stride +
                                    (first_head + g) * D);
        }
        keys.multiply_keys(q);
        const float2 chunk = keys.soften(args, begin, end);
        const float largest = fmaxf(all.x, chunk.x);
        const float kept = exp2_from(all.x, largest), weight = exp2_from(chunk.x, largest);
        keys.add_values(warps[warp].values[g], kept, weight);
        all = {largest, fmaf(all.y, kept, weight * chunk.y)};
    }
    if (all.y == 0)
        for (int c = t; c < D; c += 4) warps[warp].values[g][c] = 0;
    if (t == 0) warps[warp].largest[g] = all.x, warps[warp].sum[g] = all.y;
    __syncthreads();
    add_warps<D>(args, warps, heads, first_head, start + j, parts > 1 ? part : nullptr,
                 part_stride);
}

// Chunks of a block: one if a row's bits must not depend on the batch. Else as many as leave enough
// blocks to fill any GPU, since each part is written and read again. Small heads need fewer blocks:
// more of them are on a multiprocessor at once.
int chunks_of(const Context& ctx, const AttentionArgs& args, int64_t splits) {
    if (ctx.batch_invariant) return 1;
    const int64_t enough = 8 * args.d, blocks = args.kv_heads * args.sequences * args.max_queries;
    return static_cast<int>(std::clamp<int64_t>(splits * blocks / enough, 1, splits));
}

bool is_few_blocks(const AttentionArgs& args) {
    return args.sequences * args.max_queries * args.kv_heads * key_splits(args, kSplit) <=
           kFewBlocks;
}

}  // namespace

bool gains_by_new_rows(const AttentionArgs& args) {
    return args.max_queries == 1 && is_few_blocks(args);
}

void attention_decode_grouped(Context& ctx, const AttentionArgs& args, const NewRowArgs* fresh) {
    const Arena::Scope scope(ctx.arena);
    const int64_t rows = args.sequences * args.max_queries;
    const int splits = key_splits(args, kSplit);
    const bool whole = !ctx.batch_invariant && splits > 1 && is_few_blocks(args) &&
                       key_splits(args, kWholeWarps * kWarpKeys) == 1;
    const int chunks = whole ? 1 : chunks_of(ctx, args, splits);
    const auto parts = whole ? 1 : static_cast<int>(ceil_div(splits, chunks));
    float* all = ctx.arena.tensor(Dtype::f32, {rows, args.heads, parts, args.d + 2}).as<float>();
    const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(args.kv_heads),
                    static_cast<unsigned>(rows));
    const auto launch = [&](auto type, auto d, auto warps) {
        using T = decltype(type);
        const auto kernel =
            fresh ? grouped_kernel<T, d(), warps(), true> : grouped_kernel<T, d(), warps(), false>;
        pdl_launch(ctx, kernel, grid, 32 * warps(), 0, args, fresh ? *fresh : NewRowArgs{}, all,
                   parts, chunks);
    };
    const auto with_warps = [&](auto type, auto d) {
        whole ? launch(type, d, std::integral_constant<int, kWholeWarps>{})
              : launch(type, d, std::integral_constant<int, kManyWarps>{});
    };
    const auto with_d = [&](auto type) {
        args.d == 64 ? with_warps(type, std::integral_constant<int, 64>{})
                     : with_warps(type, std::integral_constant<int, 128>{});
    };
    args.cache_type == Dtype::f16 ? with_d(__half{}) : with_d(__nv_bfloat16{});
    combine_parts(ctx, args, all, parts);
}

}  // namespace hark::cuda
