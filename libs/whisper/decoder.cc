#include <cmath>

#include "core/error.h"
#include "kernels/ragged.h"
#include "whisper/model.h"

namespace hark::whisper {

void CrossAttention::remember(Context& ctx, Tensor encoded, Tensor keys, Tensor values,
                              const Ragged& windows) const {
    Arena::Scope scope(ctx.arena);
    Tensor k_v = kv(ctx, encoded);  // (B * n_audio_ctx, 2C)
    append_cache(ctx, keys, values, k_v, 0, windows);
}

void CrossAttention::add_to(Context& ctx, Tensor x, Tensor input, Tensor keys, Tensor values,
                            const Ragged& rows, const ScoresRequest* request) const {
    Arena::Scope scope(ctx.arena);
    const float scale = 1.0f / std::sqrt(static_cast<float>(keys.dim(3)));
    Tensor q = query(ctx, input);                                     // (T, C)
    Tensor mixed = ctx.arena.tensor(x.dtype, {x.rows(), x.dim(-1)});  // (T, C)
    attention(ctx, mixed, q, keys, values, rows, scale, false);
    if (request && !request->heads.empty()) {
        std::vector<int32_t> heads = request->heads;
        const int64_t n = static_cast<int64_t>(heads.size());
        attention_scores(ctx, request->scores, q, keys, Tensor(heads.data(), Dtype::i32, {n}), rows,
                         scale);
    }
    out.add_to(ctx, x, mixed);
}

void Decoder::remember(Context& ctx, Tensor encoded, KeyValues& cross,
                       const Ragged& windows) const {
    const Stage stage(ctx, "cross-attention cache", encoded);
    for (size_t i = 0; i < blocks.size(); ++i)
        blocks[i].cross_attn.remember(ctx, encoded, cross.keys[i], cross.values[i], windows);
}

Tensor Decoder::operator()(Context& ctx, Tensor tokens, Tensor position, const Ragged& rows,
                           const Ragged& listens, Tensor wanted, KeyValues& self, KeyValues& cross,
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
        block.attn.add_to(ctx, x, block.attn_ln(ctx, x), self.keys[i], self.values[i], rows, true);
        block.cross_attn.add_to(ctx, x, block.cross_attn_ln(ctx, x), cross.keys[i], cross.values[i],
                                listens, requests ? &requests->at(i) : nullptr);
        block.mlp.add_to(ctx, x, block.mlp_ln(ctx, x));
    }
    Tensor last = ctx.arena.tensor(activations, {wanted.dim(0), c});
    select_rows(ctx, last, x, wanted);                    // (n, C)
    linear(ctx, logits, ln(ctx, last), token_embedding);  // (n, n_vocab)
    return logits;
}

}  // namespace hark::whisper
