#include "whisper/transcribe/pass.h"

#include "kernels/runtime/gpu_span.h"
#include "kernels/runtime/transfer.h"

namespace hark::whisper {

Caches::Caches(const Model& model, int64_t rows, int64_t windows, CrossKvMode mode,
               const MemorySource& memory)
    : self({.layers = std::vector<LayerKeeps>(static_cast<size_t>(model.config.n_text_layer)),
            .heads = model.config.n_text_head,
            .head_dim = model.config.n_text_state / model.config.n_text_head,
            .dtype = model.precision.cache,
            .sequences = rows,
            .capacity = model.config.n_text_ctx},
           memory),
      cross(model.config, model.precision, mode, windows, memory) {}

void encode_windows(Context& ctx, const Model& model, Caches& caches,
                    std::span<const int64_t> windows, Tensor mel, UploadAhead* uploads) {
    const Arena::Scope scope(ctx.arena);
    const GpuSpan span(ctx, "gpu.encode");
    const Tensor there = uploads ? (*uploads)(ctx, mel) : to_device(ctx, mel);
    const Tensor encoder_out = model.encoder(ctx, there);  // (B * n_audio_ctx, C)
    model.decoder.cache_cross_kv(ctx, encoder_out, caches.cross, windows);
}

void Pass::add(std::span<const int32_t> tokens, int64_t begin, int64_t row, int64_t window,
               int64_t n_audio_ctx) {
    const int64_t end = std::ssize(tokens);
    for (int64_t i = begin; i < end; ++i) {
        tokens_.push_back(tokens[static_cast<size_t>(i)]);
        position_.push_back(static_cast<int32_t>(i));
    }
    self_rows_.add(row, end - begin, end);
    cross_rows_.add(window, end - begin, n_audio_ctx);
    windows_.push_back(window);
}

// `materialize_kv`: gathers the encoder's output, one window per sequence.
CrossAttentionInput Pass::cross_attention_input(Context& ctx, const Model& model,
                                                const Caches& caches, bool materialize_kv) const {
    CrossAttentionInput input{caches.cross, cross_rows(), {}, {}};
    if (!materialize_kv) {
        input.rows = to_device(ctx, input.rows);
        return input;
    }
    const int64_t n = model.config.n_audio_ctx, b = std::ssize(windows_);
    std::vector<int32_t> rows, slots;
    for (int64_t i = 0; i < b; ++i) {
        slots.push_back(static_cast<int32_t>(i));
        for (int64_t j = 0; j < n; ++j)
            rows.push_back(static_cast<int32_t>(windows_[static_cast<size_t>(i)] * n + j));
    }
    const Tensor encoder_out = caches.cross.encoder_out;  // (windows, n_audio_ctx, C)
    input.gathered_encoder_out = ctx.arena.tensor(encoder_out.dtype, {b * n, encoder_out.dim(2)});
    select_rows(ctx, input.gathered_encoder_out, encoder_out, to_device(ctx, ints(rows)));
    const HostBatchLayout all = HostBatchLayout::equal(b, n);
    input.windows = to_device(ctx, all.view());
    input.rows.block_table = ints(slots);
    input.rows = to_device(ctx, input.rows);
    return input;
}

bool Pass::is_step() const {
    if (self_rows().max_queries > 1 || wanted() != rows()) return false;
    for (size_t i = 0; i < wanted_.size(); ++i)
        if (wanted_[i] != static_cast<int32_t>(i)) return false;
    return true;
}

Tensor Pass::logits(Context& ctx, const Model& model, Caches& caches,
                    const std::vector<ScoresRequest>* requests) {
    return to_host(ctx, device_logits(ctx, model, caches, requests));
}

Tensor Pass::device_logits(Context& ctx, const Model& model, Caches& caches,
                           const std::vector<ScoresRequest>* requests) {
    const bool materialize_kv = caches.cross.recomputes() &&
                                (requests != nullptr || cross_rows().max_queries > kFewQueries);
    return model.decoder(ctx, to_device(ctx, tokens()), to_device(ctx, position()),
                         to_device(ctx, self_rows()),
                         cross_attention_input(ctx, model, caches, materialize_kv),
                         to_device(ctx, ints(wanted_)), caches.self, requests);
}

}  // namespace hark::whisper
