#include <cmath>
#include <numeric>

#include "core/error.h"
#include "kernels/batch_layout.h"
#include "whisper/model/model.h"

namespace hark::whisper {

CrossKvMode CrossKvCache::resolved_mode(const Config& config, const Precision& precision,
                                        CrossKvMode mode, Device device) {
    using enum WeightPrecision;
    const Dtype weights = precision.weights == int8  ? Dtype::i8
                          : precision.weights == fp8 ? Dtype::fp8
                                                     : precision.activations;
    const bool absorbs =
        device == Device::cuda && can_absorb(precision.activations, weights, config.n_text_state,
                                             config.n_text_head, config.n_audio_ctx);
    return absorbs ? mode : CrossKvMode::store;
}

CrossKvCache::CrossKvCache(const Config& config, const Precision& precision, CrossKvMode mode,
                           int64_t windows, const MemorySource& memory)
    : memory_(memory) {
    const int64_t t = config.n_audio_ctx, c = config.n_text_state, heads = config.n_text_head;
    if (resolved_mode(config, precision, mode, memory.device) == CrossKvMode::recompute)
        encoder_out = memory_.tensor(precision.activations, {windows, t, c});
    else
        key_values.emplace(KvCacheShape{.layers = std::vector<LayerKeeps>(
                                            static_cast<size_t>(config.n_text_layer)),
                                        .heads = heads,
                                        .head_dim = c / heads,
                                        .dtype = precision.cache,
                                        .sequences = windows,
                                        .capacity = t},
                           memory);
}

int64_t CrossKvCache::window_bytes(const Config& config, const Precision& precision,
                                   CrossKvMode mode, Device device) {
    const int64_t values = config.n_audio_ctx * config.n_text_state;
    if (resolved_mode(config, precision, mode, device) == CrossKvMode::recompute)
        return values * static_cast<int64_t>(size_of(precision.activations));
    return 2 * config.n_text_layer * values * static_cast<int64_t>(size_of(precision.cache));
}

void CrossAttention::cache_kv(Context& ctx, Tensor encoder_out, Tensor keys, Tensor values,
                              const BatchLayout& windows) const {
    Arena::Scope scope(ctx.arena);
    Tensor k_v = kv(ctx, encoder_out);  // (B * n_audio_ctx, 2C)
    append_cache(ctx, keys, values, k_v, 0, windows);
}

void CrossAttention::attend(Context& ctx, Tensor attn_out, Tensor q, Tensor keys, Tensor values,
                            const BatchLayout& rows, float scale,
                            const ScoresRequest* request) const {
    attention(ctx, attn_out, q, keys, values, rows, {.scale = scale, .causal = false});
    if (!request || request->heads.empty()) return;
    std::vector<int32_t> heads = request->heads;
    const int64_t n = static_cast<int64_t>(heads.size());
    attention_scores(ctx, request->scores, q, keys, Tensor(heads.data(), Dtype::i32, {n}), rows,
                     scale);
}

void CrossAttention::add_to(Context& ctx, Tensor x, const Norm& norm, int64_t n_head,
                            const CrossAttentionInput& input, size_t layer,
                            const ScoresRequest* request) const {
    Arena::Scope scope(ctx.arena);
    const int64_t c = x.dim(-1), d = c / n_head;
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const CrossKvCache& cache = input.cache;
    Tensor q = query(ctx, x, Activation::none, {norm});          // (T, C)
    Tensor attn_out = ctx.arena.tensor(x.dtype, {x.rows(), c});  // (T, C)
    if (!cache.recomputes()) {
        attend(ctx, attn_out, q, cache.key_values->keys[layer], cache.key_values->values[layer],
               input.rows, scale, request);
    } else if (input.gathered_encoder_out) {
        const int64_t b = input.windows.sequences();
        const int64_t t = input.gathered_encoder_out.rows() / b;
        Tensor keys = ctx.arena.tensor(x.dtype, {b, n_head, t, d});
        Tensor values = ctx.arena.tensor(x.dtype, {b, n_head, t, d});
        cache_kv(ctx, input.gathered_encoder_out, keys, values, input.windows);
        attend(ctx, attn_out, q, keys, values, input.rows, scale, request);
    } else {
        absorbed_attention(ctx, attn_out, q, cache.encoder_out, kv.weight, kv.bias, n_head,
                           input.rows, scale);
    }
    out.add_to(ctx, x, attn_out);
}

void Decoder::cache_cross_kv(Context& ctx, Tensor encoder_out, CrossKvCache& cache,
                             std::span<const int64_t> slots) const {
    const Arena::Scope scope(ctx.arena);
    const int64_t b = std::ssize(slots), t = encoder_out.rows() / b;
    if (!cache.recomputes()) {
        const Stage stage(ctx, "cross-attention cache", encoder_out);
        HostBatchLayout host;
        for (const int64_t slot : slots) host.add(slot, t, t);
        const BatchLayout windows = to_device(ctx, host.view());
        for (size_t i = 0; i < blocks.size(); ++i)
            blocks[i].cross_attn.cache_kv(ctx, encoder_out, cache.key_values->keys[i],
                                          cache.key_values->values[i], windows);
        return;
    }
    std::vector<int32_t> order(static_cast<size_t>(encoder_out.rows()));
    std::iota(order.begin(), order.end(), 0);
    const Tensor rows = to_device(ctx, Tensor(order.data(), Dtype::i32, {encoder_out.rows()}));
    for (int64_t i = 0, end = 0; i < b; i = end) {  // slots that follow one another together
        const int64_t slot = slots[static_cast<size_t>(i)];
        for (end = i + 1; end < b && slots[static_cast<size_t>(end)] == slot + end - i;) ++end;
        const Tensor to = cache.encoder_out.slice(slot, slot + end - i);
        select_rows(ctx, to.reshaped({(end - i) * t, encoder_out.dim(1)}), encoder_out,
                    rows.slice(i * t, end * t));
    }
}

Tensor Decoder::operator()(Context& ctx, Tensor tokens, Tensor position, const BatchLayout& rows,
                           const CrossAttentionInput& cross, Tensor wanted, KvCache& self,
                           const std::vector<ScoresRequest>* requests) const {
    const int64_t c = positions.dim(1);
    Tensor logits = ctx.arena.tensor(Dtype::f32, {wanted.dim(0), token_embedding.values.dim(0)});
    Arena::Scope scope(ctx.arena);
    const Stage stage(ctx, "decoder", tokens);

    Tensor x = ctx.arena.tensor(activations, {tokens.dim(0), c});
    embedding(ctx, x, tokens, position, token_embedding, positions);  // (T, C)
    for (size_t i = 0; i < blocks.size(); ++i) {
        const DecoderBlock& block = blocks[i];
        Arena::Scope layer(ctx.arena);
        block.attn.add_to(ctx, x, block.attn_ln, self.keys[i], self.values[i], rows);
        block.cross_attn.add_to(ctx, x, block.cross_attn_ln, n_head, cross, i,
                                requests ? &requests->at(i) : nullptr);
        block.mlp.add_to(ctx, x, block.mlp_ln);
    }
    Tensor last = x;  // a step of one row has nothing to select
    if (tokens.dim(0) > 1 || wanted.dim(0) != 1) {
        last = ctx.arena.tensor(activations, {wanted.dim(0), c});
        select_rows(ctx, last, x, wanted);  // (n, C)
    }
    linear(ctx, logits, ln(ctx, last), token_embedding);  // (n, n_vocab)
    return logits;
}

}  // namespace hark::whisper
