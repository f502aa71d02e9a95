// The layers that models are made of: weights with one verb, whose result comes from the arena.
#pragma once

#include "kernels/ops.h"

namespace hark {

// x (T, K) -> x W^T + bias (T, N); what is fused behind it is an argument.
struct Linear {
    Matrix weight;  // (N, K)
    Tensor bias;    // (N) or none

    Tensor operator()(Context& ctx, Tensor x, Activation activation = Activation::none) const {
        Tensor y = ctx.arena.tensor(x.dtype, {x.rows(), weight.values.dim(0)});
        linear(ctx, y, x, weight, {.bias = bias, .activation = activation});
        return y;
    }
    // residual += x W^T + bias
    void add_to(Context& ctx, Tensor residual, Tensor x) const {
        linear(ctx, residual, x, weight, {.bias = bias, .residual = residual});
    }
};

struct LayerNorm {
    Tensor weight, bias;  // (C)
    float eps = 1e-5f;

    Tensor operator()(Context& ctx, Tensor x) const {  // (T, C) -> (T, C)
        Tensor y = ctx.arena.tensor(x.dtype, {x.rows(), x.dim(-1)});
        layer_norm(ctx, y, x, weight, bias, eps);
        return y;
    }
};

}  // namespace hark
