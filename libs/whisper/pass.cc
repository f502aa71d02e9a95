#include "whisper/pass.h"

#include "kernels/transfer.h"

namespace hark::whisper {
namespace {

KeyValues key_values(const Model& model, int64_t slots, int64_t capacity,
                     const MemorySource& memory) {
    const Config& c = model.config;
    return KeyValues(c.n_text_layer, slots, c.n_text_head, capacity, c.n_text_state / c.n_text_head,
                     model.precision.cache, memory);
}

}  // namespace

Caches::Caches(const Model& model, int64_t rows, int64_t windows, const MemorySource& memory)
    : self(key_values(model, rows, model.config.n_text_ctx, memory)),
      cross(key_values(model, windows, model.config.n_audio_ctx, memory)) {}

void encode_windows(Context& ctx, const Model& model, Caches& caches,
                    std::span<const int64_t> windows, Tensor mel) {
    const Arena::Scope scope(ctx.arena);
    HostRagged rows;
    for (const int64_t window : windows)
        rows.add(window, model.config.n_audio_ctx, model.config.n_audio_ctx);
    const Tensor encoded = model.encoder(ctx, to_device(ctx, mel));  // (B * n_audio_ctx, C)
    model.decoder.remember(ctx, encoded, caches.cross, to_device(ctx, rows.view()));
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
}

Tensor Pass::logits(Context& ctx, const Model& model, Caches& caches,
                    const std::vector<ScoresRequest>* requests) {
    return to_host(ctx, device_logits(ctx, model, caches, requests));
}

Tensor Pass::device_logits(Context& ctx, const Model& model, Caches& caches,
                           const std::vector<ScoresRequest>* requests) {
    return model.decoder(ctx, to_device(ctx, tokens()), to_device(ctx, position()),
                         to_device(ctx, own()), to_device(ctx, listens()),
                         to_device(ctx, ints(wanted_)), caches.self, caches.cross, requests);
}

}  // namespace hark::whisper
