// The attention kernels on the GPU. attention.cu checks the arguments before it calls them.
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/runtime/gpu_limits.h"

namespace hark::cuda {

constexpr int kMostTiledHead = 128;  // channels per head of the tiles on the matrix units
constexpr float kLog2E = 1.44269504088896341f;

// The rows of a sequence's keys (and values) of one head: in one block, or in those of a table.
struct KeyRows {
    const int* table;  // null: one block
    int64_t head;      // first element of the head; with a table, within a block
    int d, shift = 0;
    int64_t block_stride = 0;

    // First element of key p; below 0 if its block is not in the cache.
    __device__ int64_t operator()(int p) const {
        if (!table) return head + int64_t{p} * d;
        const int block = table[p >> shift];
        const int64_t place = head + int64_t{p & ((1 << shift) - 1)} * d;
        return block < 0 ? -1 : block * block_stride + place;
    }
};

struct AttentionArgs {
    void* out;  // (T, H, D)
    const void *q, *keys, *values;
    Dtype out_type, q_type, cache_type;
    const int *query_start, *slot, *length;  // slot: the block table of one entry per sequence
    int64_t rows, q_stride;                  // rows of q; elements per row
    int64_t slots, capacity;                 // of the cache; positions per slot
    int heads, kv_heads, d;
    float scale_log2;  // scale * log2(e): the softmax uses powers of two
    bool causal, kv_ready;
    int sequences;
    int64_t max_queries, max_length;
    int window;          // 0: all keys
    float soft_cap;      // 0: none
    const float* sinks;  // (H) or null
    int blocks;          // of the table, per sequence
    int shift;           // log2(capacity), if that is a power of two and there are several blocks
    // keys and values are columns of q's rows: sequence b's `capacity` rows follow those of b - 1.
    bool packed;

    bool has_options() const { return window > 0 || soft_cap > 0 || sinks; }
    // First element of head h's keys (and values) of sequence b.
    __device__ int64_t cache_offset(int b, int h) const {
        const int kv_head = h / (heads / kv_heads);
        return (int64_t{slot[b]} * kv_heads + kv_head) * capacity * d;
    }
    // First element of key p of head h in sequence b; any number of blocks per sequence.
    __device__ int64_t key_offset(int b, int h, int p) const {
        const int block = slot[b * blocks + p / static_cast<int>(capacity)];
        const int kv_head = h / (heads / kv_heads);
        return ((int64_t{block} * kv_heads + kv_head) * capacity + p % capacity) * d;
    }
    // Where the keys of head h in sequence b are, for kernels that look up a block at each key.
    __device__ KeyRows key_rows(int b, int h) const {
        const int64_t head = int64_t{h / (heads / kv_heads)} * capacity * d;
        if (blocks == 1) return {nullptr, int64_t{slot[b]} * kv_heads * capacity * d + head, d};
        return {slot + b * blocks, head, d, shift, kv_heads * capacity * d};
    }
    // Number of a sequence's first keys that can be read before the previous kernels end. In a
    // causal call they may still be writing the keys of its own rows.
    __device__ int ready_keys(int b, int n) const {
        return kv_ready ? length[b] - (causal ? n : 0) : 0;
    }
    // Query j of the sequence's n sees the keys from first_key to visible.
    __device__ int first_key(int b, int n, int j) const {
        return window > 0 ? max(0, visible(b, n, j) - window) : 0;
    }
    __device__ int visible(int b, int n, int j) const {
        return causal ? min(length[b], length[b] - n + j + 1) : length[b];
    }
    // A score times log2(e), of the product of a query and a key.
    __device__ float score(float product) const {
        const float score = product * scale_log2;
        if (soft_cap <= 0) return score;
        const float cap = soft_cap * kLog2E;
        return cap * tanhf(score / cap);
    }
    // What head h's sink adds to a sum of 2^(score - largest).
    __device__ float sink(int h, float largest) const {
        return sinks ? exp2f(sinks[h] * kLog2E - largest) : 0.0f;
    }
};

// 2^x by the hardware's instruction alone: within 2 units in the last place; tiny results are 0.
__device__ inline float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 2^(x - m); 0 if no key was seen yet (a difference of infinities would be NaN).
__device__ inline float exp2_from(float x, float m) {
    return m == -INFINITY ? 0.0f : exp2_fast(x - m);
}

// Two values as one register of a product's operand, the first one in the low half.
__device__ inline uint32_t pack(__half, float a, float b) {
    const __half2 pair = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ inline uint32_t pack(__nv_bfloat16, float a, float b) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&pair);
}

// Writes elements `at` (even) and at + 1 of the output; T is the cache's type.
template <class T>
__device__ void store_pair(const AttentionArgs& args, int64_t at, float x, float y) {
    if (args.out_type == Dtype::f32) {
        *reinterpret_cast<float2*>(static_cast<float*>(args.out) + at) = {x, y};
    } else if (args.out_type == args.cache_type) {
        *reinterpret_cast<uint32_t*>(static_cast<T*>(args.out) + at) = pack(T{}, x, y);
    } else {
        store_any(args.out, args.out_type, at, x);
        store_any(args.out, args.out_type, at + 1, y);
    }
}

// Tiles of 192 or 128 queries by 128 keys on Hopper. Needs q and cache of one 16-bit type, D 64 or
// 128, rows of q aligned to 16 bytes and scale > 0. Returns false and does nothing for another D,
// for several blocks per sequence that are no multiple of kGroupedBlock keys, or if the GPU does
// not run code for sm_90a. The one kernel that takes packed rows. Source: Shah et al. 2024,
// FlashAttention-3, algorithm 2.
bool attention_flash_wgmma(Context& ctx, const AttentionArgs& args);

// Tiles of 64 or 128 queries by 64 keys on the matrix units. Needs D a multiple of 8, q and cache
// of one 16-bit type, rows of q aligned to 16 bytes and scale > 0. Takes all options. Source: Dao
// 2023, FlashAttention-2, algorithm 1.
void attention_flash_mma(Context& ctx, const AttentionArgs& args);

// Tiles of queries and keys in f32 arithmetic, for all types, every D and all options.
void attention_simt(Context& ctx, const AttentionArgs& args);

// Few queries: the keys of one query are split over blocks; a second kernel adds the parts. The
// parts do not depend on the rest of the batch, so a query's bits do not either. D is a multiple of
// 8, up to kMostHeadChannels. Takes all options.
void attention_decode_split_k(Context& ctx, const AttentionArgs& args);

constexpr int kMostGroupedHeads = 8;  // query heads of a key head
constexpr int kGroupedBlock = 32;     // keys whose rows must follow one another

// The same where 2 to kMostGroupedHeads query heads share a key head, on the matrix units. Needs q
// and cache of one 16-bit type, D 64 or 128, rows of q aligned to 16 bytes, and blocks of a
// multiple of kGroupedBlock keys. Takes all options. With `fresh` rows, one per sequence, it does
// rope_append first: all channels of a head turn, and rows of v are aligned to 16 bytes.
struct NewRowArgs;
void attention_decode_grouped(Context& ctx, const AttentionArgs& args, const NewRowArgs* fresh);
// Whether that is faster than rope_append before it: a small grid is bound by latency.
bool gains_by_new_rows(const AttentionArgs& args);

// The same for many texts with one query each, bound by bandwidth; on Hopper, without options, if
// a row's bits may depend on how many there are.
bool has_streamed_attention(const Context& ctx, const AttentionArgs& args);
void attention_decode_streamed(Context& ctx, const AttentionArgs& args, const NewRowArgs* fresh);

}  // namespace hark::cuda
