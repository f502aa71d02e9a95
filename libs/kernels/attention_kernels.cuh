// The three ways to attend on the GPU, behind the checks of attention.cu.
#pragma once

#include "kernels/cuda_common.cuh"

namespace hark::cuda {

inline constexpr int kMostHeadChannels = 128;

struct AttentionArgs {
    void* out;  // (T, H, D)
    const void *q, *keys, *values;
    Dtype out_type, q_type, cache_type;
    const int *query_start, *slot, *length;
    int64_t q_stride, capacity;  // elements of a row of q; positions of a slot
    int heads, kv_heads, d;
    float scale_log2;  // scale * log2(e): the softmax runs on powers of two
    bool causal;
    int sequences;
    int64_t max_queries, max_length;

    // First element of head h's keys (and values) of sequence b.
    __device__ int64_t cache_offset(int b, int h) const {
        const int kv_head = h / (heads / kv_heads);
        return (int64_t{slot[b]} * kv_heads + kv_head) * capacity * d;
    }
    // How many keys query j of the sequence's n sees.
    __device__ int visible(int b, int n, int j) const {
        return causal ? min(length[b], length[b] - n + j + 1) : length[b];
    }
};

// 2^x by the hardware's instruction alone: within 2 units of the last place, tiny results are 0.
__device__ inline float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 2^(x - m), and 0 where nothing has been seen yet, not a difference of infinities.
__device__ inline float exp2_from(float x, float m) {
    return m == -INFINITY ? 0.0f : exp2_fast(x - m);
}

// Tiles of 64 or 128 queries by 64 keys on the matrix units; D a multiple of 8, q and cache of one
// 16-bit type, rows of q aligned to 16 bytes, a positive scale. Source: Dao 2023, FlashAttention-2,
// algorithm 1.
void attention_by_tiles(Context& ctx, const AttentionArgs& args);

// Tiles of 32 queries by 64 keys in f32 arithmetic, for every mixture of types and every D.
void attention_in_f32(Context& ctx, const AttentionArgs& args);

// Few queries: the keys of one are split over blocks, whose parts a second kernel adds up. The
// parts are the same whatever else is in the batch, so a query's result has the same bits. D is a
// multiple of 8.
void attention_by_splits(Context& ctx, const AttentionArgs& args);

}  // namespace hark::cuda
