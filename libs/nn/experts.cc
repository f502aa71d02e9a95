#include "nn/experts.h"

#include "kernels/gradients.h"

namespace hark {

void Experts::add_to(Context& ctx, Tensor x) const {
    Arena::Scope scope(ctx.arena);
    const auto tensor = [&](int64_t n, int64_t columns) {
        return ctx.arena.tensor(x.dtype, {n, columns});
    };
    Tensor y = tensor(x.rows(), x.dim(-1));
    normalize(ctx, y, x, norm);
    if (ranks->alone()) return add_sums(ctx, x, y);
    Tensor sums = tensor(x.rows(), x.dim(-1));
    set_zero(ctx, sums);
    add_sums(ctx, sums, y);
    ranks->all_reduce(ctx, sums);
    add_scaled(ctx, x, sums, 1);
}

void Experts::add_sums(Context& ctx, Tensor x, Tensor y) const {
    const int64_t rows = x.rows(), pairs = rows * per_row;
    const int64_t hidden = gate.each.front().values.dim(0);
    const auto tensor = [&](int64_t n, int64_t columns) {
        return ctx.arena.tensor(x.dtype, {n, columns});
    };
    Tensor logits = ctx.arena.tensor(Dtype::f32, {rows, std::ssize(gate.each)});
    Tensor chosen = ctx.arena.tensor(Dtype::i32, {rows, per_row});
    Tensor weights = ctx.arena.tensor(Dtype::f32, {rows, per_row});
    linear(ctx, logits, y, router.weight, {.bias = router.bias});
    route_experts(ctx, chosen, weights, logits, routing);

    Tensor h = tensor(pairs, hidden);
    gated_experts(ctx, h, y, gate, up, chosen, gating);
    Tensor out = tensor(pairs, x.dim(-1));
    expert_linear(ctx, out, h, down, chosen);
    add_experts(ctx, x, out, weights);
    if (shared_hidden > 0)  // of (T, S)
        shared_down.add_to(ctx, x, shared_in.gated(ctx, y, {}, gating.activation));
}

}  // namespace hark
