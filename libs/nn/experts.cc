#include "nn/experts.h"

namespace hark {

void Experts::add_to(Context& ctx, Tensor x) const {
    Arena::Scope scope(ctx.arena);
    const int64_t rows = x.rows(), pairs = rows * per_row;
    const int64_t hidden = gate.each.front().values.dim(0);
    const auto tensor = [&](int64_t n, int64_t columns) {
        return ctx.arena.tensor(x.dtype, {n, columns});
    };
    Tensor y = tensor(rows, x.dim(-1));
    normalize(ctx, y, x, norm);
    Tensor logits = ctx.arena.tensor(Dtype::f32, {rows, std::ssize(gate.each)});
    Tensor chosen = ctx.arena.tensor(Dtype::i32, {rows, per_row});
    Tensor weights = ctx.arena.tensor(Dtype::f32, {rows, per_row});
    linear(ctx, logits, y, router.weight, {.bias = router.bias});
    route_experts(ctx, chosen, weights, logits, routing);

    Tensor gates = tensor(pairs, hidden), ups = tensor(pairs, hidden), h = tensor(pairs, hidden);
    expert_linear(ctx, gates, y, gate, chosen);
    expert_linear(ctx, ups, y, up, chosen);
    if (swiglu_limit > 0)
        clamped_swiglu(ctx, h, {gates}, {ups}, swiglu_slope, swiglu_limit);
    else
        gated_activation(ctx, h, {gates}, {ups}, activation);
    Tensor out = tensor(pairs, x.dim(-1));
    expert_linear(ctx, out, h, down, chosen);
    add_experts(ctx, x, out, weights);
    if (shared_hidden > 0) add_shared(ctx, x, y);
}

void Experts::add_shared(Context& ctx, Tensor x, Tensor y) const {
    shared_down.add_to(ctx, x, shared_in.gated(ctx, y, {}, activation));  // of (T, S)
}

}  // namespace hark
