// The kernels of self-attention for training on the GPU. self_attention.cu checks the arguments
// before it calls them.
//
// Row t sees the rows from first[t] to t. Tiles are on the packed axis and may cut sequences: a
// tile of queries [a, b) reads the keys from first[a] to b, a tile of keys the queries from its
// first row to the end of its last row's sequence.
#pragma once

#include <type_traits>

#include "kernels/cuda/hopper.cuh"
#include "kernels/runtime/gpu_limits.h"

namespace hark::cuda {

inline constexpr int kRowPadding = 128;  // the rows of lse2 and delta are a multiple of it

struct SelfAttentionArgs {
    void* out;               // (T, C)
    float* lse;              // (T, H)
    const void* qkv;         // (T, 3C), or (T, W) with grouped heads
    const int *first, *end;  // (T)
    int rows, heads, d;
    float scale;
    int kv_heads;

    __host__ __device__ int channels() const { return heads * d; }
    // First element of head h's queries, or of the keys or values that it uses (0, 1, 2), in row 0
    // of qkv and its gradient.
    __host__ __device__ int part(int which, int h) const {
        const int group = heads / kv_heads;
        return (which == 0 ? h : heads + (which - 1) * kv_heads + h / group) * d;
    }
    // Elements of a row of qkv.
    __host__ __device__ int width() const { return (heads + 2 * kv_heads) * d; }
    // First element of head h of row t in out and its gradient.
    __device__ int64_t place(int64_t t, int h) const { return t * channels() + int64_t{h} * d; }
};

struct SelfAttentionBackwardArgs : SelfAttentionArgs {
    void* dqkv;        // (T, 3C)
    const void* dout;  // (T, C)
    // (H, padded). lse2: lse by powers of two, infinite after the rows, whose probabilities become
    // 0. delta: the sums of out * dout over a row's channels, 0 after the rows.
    float *lse2, *delta;
    int padded;  // T rounded up to a multiple of kRowPadding
};

// Returns call(the narrowest of the kernels' widths that holds a head of d channels).
template <class Call>
auto by_head_size(int d, const Call& call) {
    if (d <= 64) return call(std::integral_constant<int, 64>());
    if (d <= 80) return call(std::integral_constant<int, 80>());
    if (d <= 96) return call(std::integral_constant<int, 96>());
    return call(std::integral_constant<int, 128>());
}

// Boxes of 64 channels of one head and `rows` rows, of `heads` heads side by side: channel, head,
// row. Channels after the head's are zeros.
CUtensorMap head_map(const SelfAttentionArgs& args, const void* data, int heads, uint32_t rows);

// bf16 with D a multiple of 8 up to kMostTiledHead, rows aligned to 16 bytes: tiles on the matrix
// units (mma.sync). Source: Dao 2023 (FlashAttention-2), algorithms 1 and 2. The gradients of
// queries and of keys and values have separate kernels: the probabilities are computed twice (7
// products instead of 5), but blocks add nothing to each other.
void self_attention_by_tiles(Context& ctx, const SelfAttentionArgs& args);
void self_attention_backward_by_tiles(Context& ctx, const SelfAttentionBackwardArgs& args);

// The same on Hopper (wgmma): tiles of 128 queries forward, of 128 keys backward. Returns false and
// does nothing if the GPU does not run code for sm_90a. Source: Shah et al. 2024, FlashAttention-3.
bool self_attention_by_wgmma(Context& ctx, const SelfAttentionArgs& args);
bool self_attention_backward_by_wgmma(Context& ctx, const SelfAttentionBackwardArgs& args);

}  // namespace hark::cuda
