// The layers that models are made of: weights and one operation, whose result is from the arena.
#pragma once

#include <vector>

#include "kernels/ops.h"

namespace hark {

// x (T, K) -> y (T, N) = activation(x W^T + bias), with the fusions of linear().
struct Linear {
    Matrix weight;  // (N, K)
    Tensor bias;    // (N) or none

    Tensor operator()(Context& ctx, Tensor x, Activation activation = Activation::none,
                      const LinearFusion& with = {}) const {
        Tensor y = ctx.arena.tensor(x.dtype, {x.rows(), weight.values.dim(0)});
        linear(ctx, y, x, weight, {.bias = bias, .activation = activation}, with);
        return y;
    }
    // residual += x W^T + bias
    void add_to(Context& ctx, Tensor residual, Tensor x) const {
        linear(ctx, residual, x, weight, {.bias = bias, .residual = residual});
    }
};

// Products of one x: queries, keys and values, or gate and up. Parts of one type are stacked to one
// matrix and computed at once; a mixed GGUF file's are several matrices, in which neighbours of one
// type are stacked.
class LinearGroup {
  public:
    LinearGroup() = default;
    // One linear whose rows are those of all parts, of `widths` rows each.
    LinearGroup(Linear stacked, const std::vector<int64_t>& widths) { add(stacked, widths); }
    // Adds the next parts: a linear with their rows. Throws Error if it has another number of rows.
    void add(Linear stacked, const std::vector<int64_t>& widths);

    // The parts' columns of f(norm(x)), in the arena; no norm if it has no weight. append: as in
    // linear(), only if is_stacked().
    std::vector<Columns> operator()(Context& ctx, Tensor x, const Norm& norm,
                                    Activation activation = Activation::none,
                                    const Append* append = nullptr) const;
    // f(gate) * up for a group of gate and up: (T, N), in the arena.
    Tensor gated(Context& ctx, Tensor x, const Norm& norm, Activation f) const;
    bool is_stacked() const { return products_.size() == 1; }

  private:
    std::vector<Linear> products_;
    struct Part {
        size_t product;
        int64_t first;  // its column there
    };
    std::vector<Part> parts_;
};

struct LayerNorm {
    Tensor weight, bias;  // (C)
    float eps = 1e-5f;

    operator Norm() const { return {weight, bias, eps}; }

    Tensor operator()(Context& ctx, Tensor x) const {  // (T, C) -> (T, C)
        Tensor y = ctx.arena.tensor(x.dtype, {x.rows(), x.dim(-1)});
        layer_norm(ctx, y, x, weight, bias, eps);
        return y;
    }
};

// Queries, keys and values of a block in one product (C channels).
struct SelfAttention {
    Linear qkv;  // (3C, C)
    Linear out;  // (C, C)

    // x (T, C) += out(attention(qkv(norm(x)))), causal; the new keys and values are appended to the
    // caches.
    void add_to(Context& ctx, Tensor x, const Norm& norm, Tensor keys, Tensor values,
                const BatchLayout& rows) const;
    // The same for an encoder: B sequences of T / B rows, whose rows see all of theirs.
    void add_to(Context& ctx, Tensor x, const Norm& norm, int64_t heads,
                const BatchLayout& rows) const;
};

struct Mlp {
    Linear fc1;  // (hidden, C)
    Linear fc2;  // (C, hidden)
    Activation activation = Activation::gelu;

    // x (T, C) += fc2(activation(fc1(norm(x))))
    void add_to(Context& ctx, Tensor x, const Norm& norm) const;
};

}  // namespace hark
