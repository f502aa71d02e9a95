// The ways to attend in training on the GPU, behind the checks of self_attention.cu.
//
// A row t sees the rows from first[t] to its own. Tiles lie on the packed axis, whatever sequences
// they cut: a tile of queries [a, b) looks at the keys from first[a] to b, a tile of keys at the
// queries from its first row to the end of its last row's sequence.
#pragma once

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/runtime/gpu_limits.h"

namespace hark::cuda {

inline constexpr int kRowPadding = 128;  // the rows of lse2 and delta are a multiple of that

struct SelfAttentionArgs {
    void* out;               // (T, C)
    float* lse;              // (T, H)
    const void* qkv;         // (T, 3C)
    const int *first, *end;  // (T)
    int rows, heads, d;
    float scale;

    __host__ __device__ int channels() const { return heads * d; }
    // First element of head h's queries, keys or values (0, 1, 2) of row t, in qkv and its
    // gradient.
    __device__ int64_t part(int which, int64_t t, int h) const {
        return (t * 3 + which) * channels() + int64_t{h} * d;
    }
    // That of row t in out and its gradient.
    __device__ int64_t place(int64_t t, int h) const { return t * channels() + int64_t{h} * d; }
};

struct SelfAttentionBackwardArgs : SelfAttentionArgs {
    void* dqkv;        // (T, 3C)
    const void* dout;  // (T, C)
    // (H, padded): lse by powers of two, infinite behind the rows, whose probabilities become 0;
    // and the sums of out * dout over a row's channels, 0 behind the rows.
    float *lse2, *delta;
    int padded;  // T up to a multiple of kRowPadding
};

// bf16 of D 64, tiles of 64 on the matrix units (mma.sync). Source: Dao 2023 (FlashAttention-2),
// algorithms 1 and 2; the gradients of queries and of keys and values in kernels of their own,
// which compute the probabilities twice (7 products instead of 5) but leave nothing to add between
// blocks.
void self_attention_by_tiles(Context& ctx, const SelfAttentionArgs& args);
void self_attention_backward_by_tiles(Context& ctx, const SelfAttentionBackwardArgs& args);

// On Hopper, bf16 of D 64: tiles of 128 by 128. False, with nothing done, where the GPU does not
// run code for sm_90a. Source: Shah et al. 2024, FlashAttention-3.
bool self_attention_by_wgmma(Context& ctx, const SelfAttentionArgs& args);
bool self_attention_backward_by_wgmma(Context& ctx, const SelfAttentionBackwardArgs& args);

}  // namespace hark::cuda
