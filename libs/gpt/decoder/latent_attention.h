// Latent attention: keys and values of all heads are products of one short row per token, which is
// what the cache keeps. The products are absorbed into queries and results, so that no key or value
// of a head is ever made. T packed rows, C channels, H heads; L channels of the latent row and R
// with rotary positions; heads of N + R channels for queries and keys, V for values.
//
//     y = norm(x)
//     q = query(y), or query(q_norm(q_down(y)))         (T, H (N + R))
//     row = [c_norm(c) | turn(r)], [c | r] = down(y)    (T, L + R)       to the cache
//     p = [key_h q_h[:N] | turn(q_h[N:])]               (T, H (L + R))
//     a = softmax(p row^T * scale) row                  (T, H (L + R))
//     x += out(value_h a_h[:L])                         (T, C)
//
// Source: DeepSeek-V2 2024, section 2.1.
#pragma once

#include <vector>

#include "gpt/decoder/residual_linear.h"

namespace hark::gpt {

struct LatentAttention {
    Norm norm;
    LinearGroup down;           // of x: q_down (Q, C), or query itself; then down (L + R, C)
    Norm q_norm;                // (Q); none: down has made the queries
    Linear query;               // (H (N + R), Q) or none
    Norm c_norm;                // (L)
    std::vector<Matrix> key;    // (L, N) per head
    std::vector<Matrix> value;  // (V, L) per head
    ResidualLinear out;         // (C, H V)
    AttentionOptions options;
    int64_t heads = 0;

    // x (T, C) += the above; `cache` (blocks, 1, S, L + R).
    void add_to(Context& ctx, Tensor x, Tensor position, const Rope& turn, Tensor cache,
                const BatchLayout& rows) const;
};

}  // namespace hark::gpt
