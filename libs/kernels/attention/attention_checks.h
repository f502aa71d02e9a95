// What attention, rope_attention and packed_attention share.
#pragma once

#include "kernels/ops.h"

namespace hark {

// Throws Error unless attention can take these.
void check_attention(const Tensor& out, const Tensor& q, const Tensor& keys, const Tensor& values,
                     const BatchLayout& rows, const AttentionOptions& options);

// Scratch for the keys, or the values, of packed_attention's B sequences: (B, heads, T / B, D).
inline Tensor packed_cache(Context& ctx, const Tensor& q_k_v, int64_t heads,
                           const BatchLayout& rows) {
    return ctx.arena.tensor(q_k_v.dtype,
                            {rows.sequences(), heads, rows.max_queries, q_k_v.dim(-1) / 3 / heads});
}

}  // namespace hark
