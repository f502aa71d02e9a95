#include "gpt/model.h"

#include <cmath>

#include "kernels/ragged.h"

namespace hark::gpt {

KeyValues::KeyValues(const Config& config, int64_t slots, Dtype dtype) {
    const int64_t d = config.n_embd / config.n_head;
    for (int64_t layer = 0; layer < config.n_layer; ++layer)
        for (std::vector<Tensor>* caches : {&keys, &values})
            caches->push_back(memory_.tensor(dtype, {slots, config.n_head, config.n_positions, d}));
}

void Attention::add_to(Context& ctx, Tensor x, Tensor input, Tensor keys, Tensor values,
                       const Ragged& rows) const {
    const int64_t c = x.dim(-1);
    const float scale = 1.0f / std::sqrt(static_cast<float>(keys.dim(-1)));
    Tensor qkv = c_attn(ctx, input);  // (T, 3C)
    append_cache(ctx, keys, qkv, c, rows);
    append_cache(ctx, values, qkv, 2 * c, rows);
    Tensor mixed = ctx.arena.tensor(x.dtype, {x.rows(), c});  // (T, C)
    attention(ctx, mixed, qkv, keys, values, rows, scale, true);
    c_proj.add_to(ctx, x, mixed);
}

void Mlp::add_to(Context& ctx, Tensor x, Tensor input) const {
    c_proj.add_to(ctx, x, c_fc(ctx, input, activation));  // (T, C) -> (T, n_inner) -> (T, C)
}

void Block::operator()(Context& ctx, Tensor x, Tensor keys, Tensor values,
                       const Ragged& rows) const {
    Arena::Scope scope(ctx.arena);
    attn.add_to(ctx, x, ln_1(ctx, x), keys, values, rows);
    mlp.add_to(ctx, x, ln_2(ctx, x));
}

Tensor Model::operator()(Context& ctx, Tensor tokens, Tensor position, const Ragged& rows,
                         Tensor wanted, KeyValues& cache) const {
    Tensor logits = ctx.arena.tensor(Dtype::f32, {wanted.dim(0), config.n_vocab});
    Arena::Scope scope(ctx.arena);
    const Stage stage(ctx, "gpt", tokens);

    Tensor x = ctx.arena.tensor(Dtype::f32, {tokens.dim(0), config.n_embd});
    embedding(ctx, x, tokens, position, wte, wpe);  // (T, C)
    for (size_t i = 0; i < h.size(); ++i)
        h[i](ctx, x, cache.keys[i], cache.values[i], rows);  // (T, C)
    Tensor last = ctx.arena.tensor(Dtype::f32, {wanted.dim(0), config.n_embd});
    select_rows(ctx, last, x, wanted);              // (n, C)
    linear(ctx, logits, ln_f(ctx, last), lm_head);  // (n, V)
    return logits;
}

}  // namespace hark::gpt
