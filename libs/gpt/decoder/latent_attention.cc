#include "gpt/decoder/latent_attention.h"

namespace hark::gpt {

void LatentAttention::add_to(Context& ctx, Tensor x, Tensor position, const Rope& turn,
                             Tensor cache, const BatchLayout& rows) const {
    Arena::Scope scope(ctx.arena);
    const int64_t width = cache.dim(-1), values = value.front().values.dim(0);  // L + R, V
    const auto parts = down(ctx, x, norm);
    Tensor q = parts[0].rows;
    if (q_norm.weight) q = query(ctx, q, Activation::none, {q_norm});  // (T, H (N + R))
    const auto tensor = [&](int64_t columns) {
        return ctx.arena.tensor(x.dtype, {x.rows(), columns});
    };
    Tensor absorbed = tensor(heads * width);  // (T, H (L + R))
    latent_append(ctx, cache, absorbed, q, parts[1].rows, heads, position, turn, c_norm, rows);
    head_linear(ctx, {absorbed}, {q}, key);
    Tensor attended = tensor(heads * width);  // (T, H (L + R))
    hark::attention(ctx, attended, absorbed, cache, cache, rows, options);
    Tensor of_heads = tensor(heads * values);  // (T, H V)
    head_linear(ctx, {of_heads}, {attended}, value);
    out.add_to(ctx, x, of_heads);
}

}  // namespace hark::gpt
