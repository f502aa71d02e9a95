// Attention of many texts, one query each: the chunks of keys that a block takes in turn, and what
// its warps make of one (decode_streamed.cu).
#pragma once

#include "kernels/attention/decode_new_rows.cuh"
#include "kernels/attention/decode_parts.cuh"
#include "kernels/cuda/hopper.cuh"
#include "kernels/cuda/mma.cuh"

namespace hark::cuda::streamed {

using namespace hopper;

inline constexpr int kChunk = kGroupedBlock;  // keys per stage: their rows follow one another
inline constexpr int kWarps = 2, kThreads = 32 * kWarps;
inline constexpr int kWarpKeys = kChunk / kWarps;  // of a chunk
inline constexpr int kPartKeys = 2048;             // of an item at most: longer texts have several
inline constexpr int kMostParts = 2;   // of the longest text: all texts of a call have as many
inline constexpr int kLeastPairs = 2;  // of texts and key heads, for each multiprocessor

// A chunk's keys and values in shared memory, as the copy engine swizzles parts of 64 channels.
template <int D>
struct Stage {
    static constexpr int kPartBytes = kChunk * 128, kSideBytes = D / 64 * kPartBytes;
    unsigned char keys[kSideBytes], values[kSideBytes];
};

// What a warp leaves of an item for the first one to add.
template <int D>
struct WarpItem {
    float values[D / 4][32], largest[2][32], sum[2][32];
};

// Shared memory of a block.
template <class T, int D>
struct Stream {
    static constexpr int kStages = 3;
    Stage<D> stages[kStages];
    NewRows<T, D> rows;
    WarpItem<D> items[kWarps - 1];
    uint64_t full[kStages];
};

struct StreamArgs {
    CUtensorMap keys, values;
    AttentionArgs attention;
    NewRowArgs fresh;
    float* parts;
    unsigned items, pairs, kv_heads;  // items: (split, text, key head); pairs: without splits
    int splits;                       // of a text's keys
    int shift;                        // log2 of the keys per block of the cache
};

// The chunks of a block's items, one after another. An item has one at least.
struct Chunks {
    unsigned item;
    int b, head;
    int begin, key, end, length;  // of the item's keys; key: the chunk's first one

    __device__ explicit Chunks(const StreamArgs& args) : item(blockIdx.x) { start(args); }
    __device__ void start(const StreamArgs& args) {
        if (!is_there(args)) return;
        const unsigned split = item / args.pairs, pair = item - split * args.pairs;
        b = static_cast<int>(pair / args.kv_heads);
        head = static_cast<int>(pair) - b * static_cast<int>(args.kv_heads);
        begin = key = static_cast<int>(split) * kPartKeys;
        length = args.attention.length[b];
        end = min(length, key + kPartKeys);
    }
    __device__ bool is_there(const StreamArgs& args) const { return item < args.items; }
    __device__ bool is_last() const { return key + kChunk >= end; }
    __device__ bool has_newest() const { return is_last() && key < end && end == length; }
    __device__ void advance(const StreamArgs& args) {
        key += kChunk;
        if (key < end) return;
        item += gridDim.x;
        start(args);
    }
    // Where the cache has the text's newest key; below 0: nowhere.
    __device__ int64_t newest(const StreamArgs& args) const {
        const int p = length - 1;
        if (p >= args.attention.blocks * args.attention.capacity) return -1;
        const int64_t block = args.attention.slot[b * args.attention.blocks + (p >> args.shift)];
        if (block < 0 || block >= args.attention.slots) return -1;
        const int64_t row = (block * args.kv_heads + head) * args.attention.capacity;
        return (row + (p & ((1u << args.shift) - 1))) * args.attention.d;
    }
    // The block of the cache that has the chunk; below 0: none, so its rows are outside.
    __device__ int block(const StreamArgs& args) const {
        if (!is_there(args)) return -1;
        return args.attention.slot[b * args.attention.blocks + (key >> args.shift)];
    }
};

// movmatrix: a matrix of 8 x 8 values of 16 bits, transposed; lane 4 g + t has (g, 2t), (g, 2t +
// 1).
__device__ inline uint32_t transposed(uint32_t pair) {
    uint32_t to;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(pair));
    return to;
}

// Eight channels of a chunk's row, in a stage's keys or values.
template <int D>
__device__ inline unsigned char* eight_channels(unsigned char* side, int row, int eight) {
    return side + eight / 8 * Stage<D>::kPartBytes + row * 128 + ((eight % 8) ^ (row % 8)) * 16;
}

// The same for a lane's row and channels of a product: 16 k + 8 high on, of rows 16 m further.
template <int D>
__device__ inline unsigned char* operand(unsigned char* side, int row, int high, int k, int m) {
    const int first = row * 128 + (high ^ (row % 8)) * 16;
    return side + (first ^ (k % 4 * 32)) + k / 4 * Stage<D>::kPartBytes + m * 16 * 128;
}

// What a warp has of an item, from Tiles x 16 keys of each chunk. Keys and channels are rows of
// products, query heads the 8 columns: lane 4 g + t has those of heads 2t and 2t + 1.
template <class T, int D, int Tiles>
struct ItemSums {
    uint32_t q[D / 16][2];     // head g, channels 16 k + 2t on and 8 further
    float values[D / 16][4];   // channels 16 i + g and 8 further
    float largest[2], sum[2];  // sum: of the lane's keys

    __device__ void begin(const T* head) {  // null: there is none
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int k = 0; k < D / 16; ++k)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                q[k][i] =
                    head ? *reinterpret_cast<const uint32_t*>(head + 16 * k + 8 * i + 2 * t) : 0;
#pragma unroll
        for (auto& four : values)
            for (float& value : four) value = 0;
        for (int i = 0; i < 2; ++i) largest[i] = -INFINITY, sum[i] = 0;
    }

    // Scores become weights relative to the largest one, `keys` of them; returns the factors of
    // what the warp had before.
    __device__ void soften(float (&p)[Tiles][4], int keys, float scale_log2, float (&kept)[2]) {
        const int g = threadIdx.x % 32 / 4;
#pragma unroll
        for (int i = 0; i < 2; ++i) {  // head 2t + i
            float most = largest[i];
#pragma unroll
            for (int m = 0; m < Tiles; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float& score = p[m][2 * half + i];
                    score = 16 * m + 8 * half + g < keys ? score * scale_log2 : -INFINITY;
                    most = fmaxf(most, score);
                }
            for (int step = 4; step <= 16; step *= 2)
                most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
            const float from = most == -INFINITY ? 0.0f : most;
            kept[i] = exp2_fast(largest[i] - from);
            largest[i] = most;
            sum[i] *= kept[i];
#pragma unroll
            for (int m = 0; m < Tiles; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float& score = p[m][2 * half + i];
                    score = exp2_fast(score - from);
                    sum[i] += score;
                }
        }
    }

    // Adds `keys` keys of a chunk from `first` on.
    __device__ void add(Stage<D>& stage, int first, int keys, float scale_log2) {
        const int lane = threadIdx.x % 32;
        float p[Tiles][4] = {}, kept[2];
        unsigned char* const k_side = stage.keys + first * 128;
        unsigned char* const v_side = stage.values + first * 128;
#pragma unroll
        for (int k = 0; k < D / 16; ++k)
#pragma unroll
            for (int m = 0; m < Tiles; ++m) {
                uint32_t a[4];
                load_matrices<false>(a, operand<D>(k_side, lane % 16, lane / 16, k, m));
                mma(T{}, p[m], a, q[k][0], q[k][1]);
            }
        soften(p, keys, scale_log2, kept);
        uint32_t weights[Tiles][2];
#pragma unroll
        for (int m = 0; m < Tiles; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                weights[m][half] = transposed(pack(T{}, p[m][2 * half], p[m][2 * half + 1]));
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
#pragma unroll
            for (int c = 0; c < 4; ++c) values[i][c] *= kept[c % 2];
#pragma unroll
            for (int m = 0; m < Tiles; ++m) {
                uint32_t a[4];
                load_matrices<true>(
                    a, operand<D>(v_side, lane / 16 * 8 + lane % 8, lane / 8 % 2, i, m));
                mma(T{}, values[i], a, weights[m][0], weights[m][1]);
            }
        }
    }

    // Leaves everything to another warp's take().
    __device__ void leave(WarpItem<D>& to) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < D / 4; ++i) to.values[i][lane] = values[i / 4][i % 4];
        for (int i = 0; i < 2; ++i) to.largest[i][lane] = largest[i], to.sum[i][lane] = sum[i];
    }
    __device__ void take(const WarpItem<D>& from) {
        const int lane = threadIdx.x % 32;
        float kept[2], added[2];
        for (int i = 0; i < 2; ++i) {
            const float theirs = from.largest[i][lane], most = fmaxf(largest[i], theirs);
            kept[i] = exp2_from(largest[i], most), added[i] = exp2_from(theirs, most);
            sum[i] = sum[i] * kept[i] + from.sum[i][lane] * added[i];
            largest[i] = most;
        }
#pragma unroll
        for (int i = 0; i < D / 4; ++i) {
            float& value = values[i / 4][i % 4];
            value = value * kept[i % 2] + from.values[i][lane] * added[i % 2];
        }
    }

    // Adds up the lanes' sums.
    __device__ void finish() {
        for (int i = 0; i < 2; ++i)
            for (int step = 4; step <= 16; step *= 2)
                sum[i] += __shfl_xor_sync(0xffffffff, sum[i], step);
    }
    // The result of `heads` heads, of which the first one's is at `to`.
    __device__ void write(T* to, int heads) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        float by[2];
        for (int i = 0; i < 2; ++i) by[i] = sum[i] > 0 ? __fdividef(1.0f, sum[i]) : 0;
#pragma unroll
        for (int i = 0; i < D / 16; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const uint32_t pair = transposed(
                    pack(T{}, values[i][2 * half] * by[0], values[i][2 * half + 1] * by[1]));
                if (g < heads)
                    *reinterpret_cast<uint32_t*>(to + g * D + 16 * i + 8 * half + 2 * t) = pair;
            }
    }
    // The same as parts, `stride` floats from one head's to the next one's.
    __device__ void write_part(float* to, int64_t stride, int heads) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        for (int i = 0; i < 2 && 2 * t + i < heads; ++i) {
            float* const own = to + (2 * t + i) * stride;
#pragma unroll
            for (int c = 0; c < D / 16; ++c) {
                own[16 * c + g] = values[c][i];
                own[16 * c + 8 + g] = values[c][2 + i];
            }
            if (g == 0) own[D] = largest[i], own[D + 1] = sum[i];
        }
    }
};

// Values of keys from `keys` on, which a text does not have, become zeros: the cache may have any
// bits there. If `newest` is there, its rows are those of key keys - 1. By a block's first warp.
template <class T, int D>
__device__ void end_chunk(Stage<D>& stage, int keys, const NewRows<T, D>* newest) {
    const int lane = threadIdx.x;
    if (newest && lane < D / 8) {
        const auto put = [&](unsigned char* to, const T* from) {
            *reinterpret_cast<uint4*>(eight_channels<D>(to, keys - 1, lane)) =
                reinterpret_cast<const uint4*>(from)[lane];
        };
        put(stage.keys, newest->key);
        put(stage.values, newest->value);
    }
    if (lane >= keys)
        for (int i = 0; i < D / 8; ++i)
            *reinterpret_cast<uint4*>(eight_channels<D>(stage.values, lane, i)) = uint4{};
    fence_stores();  // before the stage's next copy
}

// The angles of a thread's channels. Not inlined: its code is long, and used at two places.
template <int D>
__device__ __noinline__ Turns<2> turns_of(const RopeArgs& rope, int t) {
    return Turns<2>(rope, threadIdx.x % (D / 4) * 2, rope.position[t]);
}

// Loads an item's `heads` query heads of row t and, if it has the newest key, that and its value,
// norms and turns them. newest: where the cache has the newest key; below 0: nowhere. A loop over
// the heads in shared memory: what NewRows::load has for many warps would be 20 KB of code. The
// caller synchronises the block afterwards.
template <class T, int D>
__device__ void load_rows(NewRows<T, D>& rows, const NewRowArgs& from, int t, int kv_head,
                          int heads, bool has_newest, int64_t newest, const Turns<2>& by) {
    constexpr int kEights = D / 8, kLanes = D / 4;
    constexpr int kMost = (kMostGroupedHeads * kEights + kThreads - 1) / kThreads;
    const RopeArgs& rope = from.rope;
    const int thread = threadIdx.x, eight = thread % kEights;
    const auto eights = [t](const void* of, int64_t width, int first) {
        return reinterpret_cast<const uint4*>(static_cast<const T*>(of) + t * width + first);
    };
    const uint4* const q = eights(from.q, rope.q_width, kv_head * heads * D);
    uint4 words[kMost], more{};
#pragma unroll
    for (int i = 0; i < kMost; ++i)
        if (kThreads * i + thread < heads * kEights) words[i] = q[kThreads * i + thread];
    const bool is_key = thread < kEights, has_more = has_newest && thread < 2 * kEights;
    if (has_more)
        more = is_key ? eights(from.k, rope.k_width, kv_head * D)[eight]
                      : eights(from.v, rope.v_width, kv_head * D)[eight];
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
        const int at = kThreads * i + thread;
        if (at < heads * kEights)
            *reinterpret_cast<uint4*>(rows.queries[at / kEights] + at % kEights * 8) = words[i];
    }
    if (has_more) reinterpret_cast<uint4*>(is_key ? rows.key : rows.value)[eight] = more;
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first <= heads; first += kThreads / kLanes) {
        const int head = first + thread / kLanes;  // the key after the queries
        const bool is_query = head < heads;
        T* const row = is_query ? rows.queries[head] : rows.key;
        Channels<2> own(row, thread % kLanes, D / 2);
        if (rope.q_norm || rope.k_norm) {
            const float eps = is_query ? rope.q_eps : rope.k_eps;
            const float factor = norm_factor(own.squares(), kLanes, D, eps);
            const float* const weights = is_query ? rope.q_norm : rope.k_norm;
            if (weights) own.norm(factor, weights, D / 2);
        }
        own.rotate(by);
        if (head <= heads) own.store(row, D / 2);
    }
    if (!has_newest || newest < 0) return;
    __syncthreads();
    if (!has_more) return;
    T* const cache = static_cast<T*>(is_key ? rope.keys : rope.values) + newest;
    reinterpret_cast<uint4*>(cache)[eight] =
        is_key ? reinterpret_cast<const uint4*>(rows.key)[eight] : more;
}

}  // namespace hark::cuda::streamed
