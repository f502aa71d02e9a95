// The ways to attend on the GPU, behind the checks of attention.cu.
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/runtime/gpu_limits.h"

namespace hark::cuda {

struct AttentionArgs {
    void* out;  // (T, H, D)
    const void *q, *keys, *values;
    Dtype out_type, q_type, cache_type;
    const int *query_start, *slot, *length;
    int64_t rows, q_stride;   // of q; elements of a row
    int64_t slots, capacity;  // of the cache; positions of a slot
    int heads, kv_heads, d;
    float scale_log2;  // scale * log2(e): the softmax runs on powers of two
    bool causal, kv_ready;
    int sequences;
    int64_t max_queries, max_length;

    // First element of head h's keys (and values) of sequence b.
    __device__ int64_t cache_offset(int b, int h) const {
        const int kv_head = h / (heads / kv_heads);
        return (int64_t{slot[b]} * kv_heads + kv_head) * capacity * d;
    }
    // How many of a sequence's first keys can be read before the kernels in front have ended: those
    // of a causal call's own rows may be among what these write.
    __device__ int ready_keys(int b, int n) const {
        return kv_ready ? length[b] - (causal ? n : 0) : 0;
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

// Two values as a register of a product's factor, the first one in the low half.
__device__ inline uint32_t pack(__half, float a, float b) {
    const __half2 pair = __floats2half2_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ inline uint32_t pack(__nv_bfloat16, float a, float b) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&pair);
}

// Writes elements `at` (even) and at + 1 of the output; T is the type of the cache.
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

// On Hopper: tiles of 192 or 128 queries by 128 keys, where q and cache are of one 16-bit type, D
// is 64 or 128, q's rows are aligned to 16 bytes and the scale is positive. False, with nothing
// done, where D is another one or the GPU does not run code for sm_90a. Source: Shah et al. 2024,
// FlashAttention-3, algorithm 2.
bool attention_by_wgmma(Context& ctx, const AttentionArgs& args);

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
