#include "nn/blocks.h"

#include <cmath>

#include "core/error.h"

namespace hark {

void LinearGroup::add(Linear stacked, const std::vector<int64_t>& widths) {
    int64_t first = 0;
    for (const int64_t width : widths) {
        parts_.push_back({products_.size(), first});
        first += width;
    }
    require(first == stacked.weight.values.dim(0), "linear group: expected parts of ", first,
            " rows in all, found ", stacked.weight.values);
    products_.push_back(std::move(stacked));
}

std::vector<Columns> LinearGroup::operator()(Context& ctx, Tensor x, const Norm& norm,
                                             Activation activation, const Append* append) const {
    std::vector<Tensor> ys;
    if (is_stacked()) {
        ys.push_back(products_[0](ctx, x, activation, {norm, append}));
    } else {
        if (norm.weight) {
            Tensor normed = ctx.arena.tensor(x.dtype, {x.rows(), x.dim(-1)});
            normalize(ctx, normed, x, norm);
            x = normed;
        }
        for (const Linear& product : products_) ys.push_back(product(ctx, x, activation));
    }
    std::vector<Columns> columns;
    for (const Part& part : parts_) columns.push_back({ys[part.product], part.first});
    return columns;
}

Tensor LinearGroup::gated(Context& ctx, Tensor x, const Norm& norm, Activation f) const {
    const Linear& first = products_[0];
    const int64_t rows = first.weight.values.dim(0);
    Tensor h = ctx.arena.tensor(x.dtype, {x.rows(), is_stacked() ? rows / 2 : rows});
    if (is_stacked()) {
        linear(ctx, h, x, first.weight, {.bias = first.bias, .activation = f},
               {.norm = norm, .gated = true});
        return h;
    }
    const auto gate_up = (*this)(ctx, x, norm);
    gated_activation(ctx, h, gate_up[0], gate_up[1], f);
    return h;
}

void SelfAttention::add_to(Context& ctx, Tensor x, const Norm& norm, Tensor keys, Tensor values,
                           const BatchLayout& rows) const {
    Arena::Scope scope(ctx.arena);
    const int64_t c = x.dim(-1);
    const float scale = 1.0f / std::sqrt(static_cast<float>(keys.dim(-1)));
    const Append append{keys, values, c, rows};
    Tensor q_k_v = qkv(ctx, x, Activation::none, {norm, &append});  // (T, 3C)
    Tensor attn_out = ctx.arena.tensor(x.dtype, {x.rows(), c});     // (T, C)
    attention(ctx, attn_out, q_k_v, keys, values, rows,
              {.scale = scale, .causal = true, .bits = qkv.weight.x_bits()});
    out.add_to(ctx, x, attn_out);
}

void SelfAttention::add_to(Context& ctx, Tensor x, const Norm& norm, int64_t heads,
                           const BatchLayout& rows) const {
    Arena::Scope scope(ctx.arena);
    const int64_t c = x.dim(-1);
    const float scale = 1.0f / std::sqrt(static_cast<float>(c / heads));
    Tensor q_k_v = qkv(ctx, x, Activation::none, {norm});        // (T, 3C)
    Tensor attn_out = ctx.arena.tensor(x.dtype, {x.rows(), c});  // (T, C)
    packed_attention(ctx, attn_out, q_k_v, heads, rows,
                     {.scale = scale, .bits = qkv.weight.x_bits()});
    out.add_to(ctx, x, attn_out);
}

void Mlp::add_to(Context& ctx, Tensor x, const Norm& norm) const {
    Arena::Scope scope(ctx.arena);
    fc2.add_to(ctx, x, fc1(ctx, x, activation, {norm}));  // (T, C) -> (T, hidden) -> (T, C)
}

}  // namespace hark
