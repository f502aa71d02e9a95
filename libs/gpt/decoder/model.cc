#include "gpt/decoder/model.h"

#include "core/error.h"
#include "gpt/families/tensor_slices.h"
#include "kernels/batch_layout.h"
#include "kernels/gradients.h"

namespace hark::gpt {

KvCacheShape cache_shape(const DecoderConfig& config, Dtype dtype, int64_t capacity) {
    require(dtype != Dtype::q8_0 || config.head_dim % block_size(dtype).values == 0,
            "keys and values in q8_0: expected heads of a multiple of 32 channels, the model has ",
            config.head_dim, "; give another type, such as f16");
    KvCacheShape shape{.heads = config.n_kv_head,
                       .head_dim = config.head_dim,
                       .has_values = !config.is_latent(),
                       .dtype = dtype,
                       .capacity = capacity};
    for (const LayerConfig& layer : config.layers)
        shape.layers.push_back(LayerKeeps::keys(layer.window, capacity));
    return shape;
}

std::string fingerprint_of(Context& ctx, const Model& model) {
    const DecoderConfig& c = model.config;
    Fingerprint fingerprint;
    fingerprint.add(c.family.data(), c.family.size());
    for (const int64_t size : {c.n_layer, c.n_head, c.n_kv_head, c.head_dim}) fingerprint.add(size);
    for (const float factor : {c.norm_eps, c.norm_offset, c.attention_scale, c.attention_soft_cap,
                               c.embedding_scale, c.residual_scale})
        fingerprint.add(factor);
    for (const RopeTable& rope : c.ropes) {
        for (const std::vector<float>* table : {&rope.frequencies, &rope.long_frequencies})
            fingerprint.add(table->data(), table->size() * sizeof(float));
        fingerprint.add(rope.scale);
        fingerprint.add(rope.original_length);
    }
    for (const LayerConfig& layer : c.layers) {
        fingerprint.add(layer.rope);
        fingerprint.add(layer.window);
    }
    fingerprint.add(model.precision.activations);
    model.weights.add_to(fingerprint, ctx);
    return fingerprint.text();
}

void ResidualLinear::add_to(Context& ctx, Tensor x, Tensor y) const {
    if (!post_norm.weight && scale == 1 && ranks->alone()) return linear.add_to(ctx, x, y);
    Tensor z = linear(ctx, y);  // (T, C)
    ranks->all_reduce(ctx, z);
    if (post_norm.weight) normalize(ctx, z, z, post_norm);
    add_scaled(ctx, x, z, scale);
}

void DecoderAttention::add_to(Context& ctx, Tensor x, Tensor position, const Rope& turn,
                              Tensor keys, Tensor values, const BatchLayout& rows) const {
    Arena::Scope scope(ctx.arena);
    // Without rotary positions and norms the product itself may write the cache.
    const bool plain = rope < 0 && qk_norm == QkNorm::none && qkv.is_stacked();
    const Append append{keys, values, heads * head_dim, rows};
    const auto parts = qkv(ctx, x, norm, Activation::none, plain ? &append : nullptr);
    const Columns &q = parts[0], &k = parts[1], &v = parts[2];  // (T, H D), (T, Hkv D) twice
    Tensor attn_out = ctx.arena.tensor(x.dtype, {x.rows(), heads * head_dim});  // (T, H D)
    if (plain) {
        hark::attention(ctx, attn_out, q.rows, keys, values, rows, options);
    } else {
        const bool by_head = qk_norm == QkNorm::head;
        if (qk_norm == QkNorm::row) {
            normalize(ctx, q.rows, q.rows, q_norm);
            normalize(ctx, k.rows, k.rows, k_norm);
        }
        rope_attention(ctx, attn_out, keys, values, q, k, v, position, turn,
                       by_head ? q_norm : Norm{}, by_head ? k_norm : Norm{}, rows, options);
    }
    out.add_to(ctx, x, attn_out);
}

void DecoderMlp::add_to(Context& ctx, Tensor x) const {
    Arena::Scope scope(ctx.arena);
    if (!gated) return down.add_to(ctx, x, in(ctx, x, norm, activation)[0].rows);
    down.add_to(ctx, x, in.gated(ctx, x, norm, activation));  // (T, inner)
}

Tensor Model::operator()(Context& ctx, Tensor tokens, Tensor position,
                         std::span<const BatchLayout> rows, Tensor wanted, const KvCache& cache,
                         int64_t text_length) const {
    Tensor logits = ctx.arena.tensor(Dtype::f32, {wanted.dim(0), config.n_vocab});
    const Arena::Scope scope(ctx.arena);
    const Stage stage(ctx, "gpt", tokens);
    head(ctx, logits, states(ctx, tokens, position, rows, wanted, cache, text_length));
    return logits;
}

Tensor Model::states(Context& ctx, Tensor tokens, Tensor position,
                     std::span<const BatchLayout> rows, Tensor wanted, const KvCache& cache,
                     int64_t text_length) const {
    Tensor normed = ctx.arena.tensor(precision.activations, {wanted.dim(0), config.n_embd});
    const Arena::Scope scope(ctx.arena);
    Tensor x = ctx.arena.tensor(precision.activations, {tokens.dim(0), config.n_embd});
    embedding(ctx, x, tokens, position, token_table, position_table,
              config.embedding_scale);  // (T, C)
    if (text_length == 0) text_length = rows[0].max_length;
    for (size_t i = 0; i < layers.size(); ++i) {
        const auto& [attention, mlp] = layers[i];
        const int rope = config.layers[i].rope;
        const Rope turn =
            rope < 0 ? Rope{} : ropes[static_cast<size_t>(rope)].of_length(text_length);
        const BatchLayout& layout = rows[cache.group_of(i)];
        if (const auto* latent = std::get_if<LatentAttention>(&attention))
            latent->add_to(ctx, x, position, turn, cache.keys[i], layout);  // (T, C)
        else
            std::get<DecoderAttention>(attention).add_to(ctx, x, position, turn, cache.keys[i],
                                                         cache.values[i], layout);
        // Beyond the last attention only the wanted rows count. A decode step's one row needs no
        // selection.
        if (i + 1 == layers.size() && (tokens.dim(0) > 1 || wanted.dim(0) != 1)) {
            const Tensor last = ctx.arena.tensor(x.dtype, {wanted.dim(0), config.n_embd});
            select_rows(ctx, last, x, wanted);
            x = last;
        }
        std::visit([&](const auto& block) { block.add_to(ctx, x); }, mlp);  // (T or n, C)
    }
    normalize(ctx, normed, x, final_norm);  // (n, C)
    return normed;
}

void Model::head(Context& ctx, Tensor logits, Tensor states) const {
    if (ranks->alone())
        linear(ctx, logits, states, lm_head);  // (n, V)
    else
        gather_head(ctx, logits, states);
    if (config.logit_scale != 1 || config.logit_soft_cap > 0)
        scale_logits(ctx, logits, config.logit_scale, config.logit_soft_cap);
}

void Model::gather_head(Context& ctx, Tensor logits, Tensor states) const {
    const Arena::Scope scope(ctx.arena);
    const int64_t n = states.dim(0);
    const auto tokens = [&](int rank) { return tokens_of(config.n_vocab, {rank, ranks->size()}); };
    Tensor all = ctx.arena.tensor(Dtype::f32, {ranks->size() * n * tokens(0).size()});
    // A rank's (n, tokens), which may be fewer than the first one's.
    const auto of_rank = [&](int rank) {
        const int64_t own = tokens(rank).size();
        return ranks->part(all, rank).slice(0, n * own).reshaped({n, own});
    };
    linear(ctx, of_rank(ranks->rank()), states, lm_head);
    ranks->all_gather(ctx, all);
    for (int rank = 0; rank < ranks->size(); ++rank)
        copy_columns(ctx, {logits, tokens(rank).begin}, {of_rank(rank)}, tokens(rank).size());
}

}  // namespace hark::gpt
