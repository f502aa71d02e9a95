#include "gpt/decoder/model.h"

#include "kernels/batch_layout.h"

namespace hark::gpt {

KvCache make_cache(const Config& config, int64_t slots, Dtype dtype, const MemorySource& memory) {
    return KvCache(config.n_layer, slots, config.n_head, config.n_positions,
                   config.n_embd / config.n_head, dtype, memory);
}

void Block::operator()(Context& ctx, Tensor x, Tensor keys, Tensor values,
                       const BatchLayout& rows) const {
    Arena::Scope scope(ctx.arena);
    attn.add_to(ctx, x, ln_1, keys, values, rows, true);
    mlp.add_to(ctx, x, ln_2);
}

Tensor Model::operator()(Context& ctx, Tensor tokens, Tensor position, const BatchLayout& rows,
                         Tensor wanted, KvCache& cache) const {
    Tensor logits = ctx.arena.tensor(Dtype::f32, {wanted.dim(0), config.n_vocab});
    Arena::Scope scope(ctx.arena);
    const Stage stage(ctx, "gpt", tokens);

    Tensor x = ctx.arena.tensor(precision.activations, {tokens.dim(0), config.n_embd});
    embedding(ctx, x, tokens, position, wte, wpe);  // (T, C)
    for (size_t i = 0; i < h.size(); ++i)
        h[i](ctx, x, cache.keys[i], cache.values[i], rows);  // (T, C)
    Tensor last = x;  // a decode step's one row needs no selection
    if (tokens.dim(0) > 1 || wanted.dim(0) != 1) {
        last = ctx.arena.tensor(precision.activations, {wanted.dim(0), config.n_embd});
        select_rows(ctx, last, x, wanted);  // (n, C)
    }
    linear(ctx, logits, ln_f(ctx, last), lm_head);  // (n, V)
    return logits;
}

}  // namespace hark::gpt
