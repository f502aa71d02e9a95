#include "whisper/transcribe/pass.h"

#include "kernels/runtime/transfer.h"

namespace hark::whisper {

Caches::Caches(const Model& model, int64_t rows, int64_t windows, Keep keep,
               const MemorySource& memory)
    : self(model.config.n_text_layer, rows, model.config.n_text_head, model.config.n_text_ctx,
           model.config.n_text_state / model.config.n_text_head, model.precision.cache, memory),
      heard(model.config, model.precision, keep, windows, memory) {}

void encode_windows(Context& ctx, const Model& model, Caches& caches,
                    std::span<const int64_t> windows, Tensor mel) {
    const Arena::Scope scope(ctx.arena);
    const Tensor encoded = model.encoder(ctx, to_device(ctx, mel));  // (B * n_audio_ctx, C)
    model.decoder.remember(ctx, encoded, caches.heard, windows);
}

void Pass::add(std::span<const int32_t> tokens, int64_t begin, int64_t row, int64_t window,
               int64_t n_audio_ctx) {
    const int64_t end = std::ssize(tokens);
    for (int64_t i = begin; i < end; ++i) {
        tokens_.push_back(tokens[static_cast<size_t>(i)]);
        position_.push_back(static_cast<int32_t>(i));
    }
    own_.add(row, end - begin, end);
    listens_.add(window, end - begin, n_audio_ctx);
    windows_.push_back(window);
}

// Of `unfolded` windows the encoder's output is gathered, one a sequence.
Listening Pass::listening(Context& ctx, const Model& model, const Caches& caches,
                          bool unfolded) const {
    Listening listening{caches.heard, listens(), {}, {}};
    if (!unfolded) {
        listening.rows = to_device(ctx, listening.rows);
        return listening;
    }
    const int64_t n = model.config.n_audio_ctx, b = std::ssize(windows_);
    std::vector<int32_t> rows, slots;
    for (int64_t i = 0; i < b; ++i) {
        slots.push_back(static_cast<int32_t>(i));
        for (int64_t j = 0; j < n; ++j)
            rows.push_back(static_cast<int32_t>(windows_[static_cast<size_t>(i)] * n + j));
    }
    const Tensor encoded = caches.heard.encoded;  // (windows, n_audio_ctx, C)
    listening.gathered = ctx.arena.tensor(encoded.dtype, {b * n, encoded.dim(2)});
    select_rows(ctx, listening.gathered, encoded, to_device(ctx, ints(rows)));
    const HostRagged all = HostRagged::equal(b, n);
    listening.windows = to_device(ctx, all.view());
    listening.rows.slot = ints(slots);
    listening.rows = to_device(ctx, listening.rows);
    return listening;
}

bool Pass::is_step() const {
    if (own().max_queries > 1 || wanted() != rows()) return false;
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
    const bool unfolded =
        caches.heard.folded() && (requests != nullptr || listens().max_queries > kFewQueries);
    return model.decoder(ctx, to_device(ctx, tokens()), to_device(ctx, position()),
                         to_device(ctx, own()), listening(ctx, model, caches, unfolded),
                         to_device(ctx, ints(wanted_)), caches.self, requests);
}

}  // namespace hark::whisper
