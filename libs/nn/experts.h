// A mixture of experts, which many decoders have instead of an MLP.
#pragma once

#include "nn/blocks.h"

namespace hark {

// T rows, C channels, E experts of I hidden channels, k of them per row. y = norm(x);
//
//     chosen, weights = the k experts with the largest router(y)           (T, k)
//     x += sum over the chosen of weight * down(f(gate(y)) * up(y))         (T, C)
//
// Source: Jiang et al. 2024 (Mixtral), section 2.1.
struct Experts {
    Norm norm;
    Linear router;            // (E, C)
    int64_t per_row = 0;      // k
    bool normalized = true;   // the weights of a row's experts have the sum 1
    ExpertMatrices gate, up;  // (I, C) each
    ExpertMatrices down;      // (C, I) each
    Activation activation = Activation::silu;
    // The arguments of clamped_swiglu, which replaces the activation; limit 0: it does not.
    float swiglu_slope = 0, swiglu_limit = 0;

    void add_to(Context& ctx, Tensor x) const;
};

}  // namespace hark
