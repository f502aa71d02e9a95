#include "whisper/transcribe/draft.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/runtime/transfer.h"
#include "kernels/sampling/distribution.h"

namespace hark::whisper {

Drafter::Drafter(const Model& model, int64_t n_vocab, int64_t windows, const MemorySource& memory)
    : model_(model),
      caches_(model, windows, windows, CrossKvMode::store, memory),
      cached_(static_cast<size_t>(windows)) {
    require(model.config.n_vocab == n_vocab, "the draft model has ", model.config.n_vocab,
            " tokens, the model ", n_vocab, ": they must share their vocabulary");
}

void Drafter::encode(Context& ctx, std::span<const int64_t> windows, Tensor mel) {
    encode_windows(ctx, model_, caches_, windows, mel);
    for (const int64_t window : windows) cached_[static_cast<size_t>(window)].clear();
}

std::vector<int32_t> Drafter::propose(Context& ctx, const Row& row,
                                      const LogitConstraints& constraints, int64_t count) {
    std::vector<int32_t>& cached = cached_[static_cast<size_t>(row.window)];
    std::vector<int32_t> tokens(row.tokens.begin(), row.tokens.begin() + row.length);
    // Rejected proposals leave the cache; the newest token is decoded again for its logits.
    const auto same = std::mismatch(cached.begin(), cached.end(), tokens.begin(), tokens.end() - 1);
    int64_t begin = same.first - cached.begin();
    std::vector<int32_t> drafts;
    while (std::ssize(drafts) < count && std::ssize(tokens) <= model_.config.n_text_ctx) {
        const Scratch scratch(ctx);
        Pass pass;
        pass.add(tokens, begin, row.window, row.window, model_.config.n_audio_ctx);
        pass.want(pass.rows() - 1);
        Tensor logits = pass.logits(ctx, model_, caches_);
        const std::span<float> last(logits.as<float>(), static_cast<size_t>(logits.dim(1)));
        begin = std::ssize(tokens);
        apply_constraints(constraints,
                          std::span(tokens).subspan(static_cast<size_t>(row.sample_begin)), last);
        drafts.push_back(argmax(last));
        if (drafts.back() == constraints.eot) break;
        tokens.push_back(drafts.back());
    }
    tokens.resize(static_cast<size_t>(begin));
    cached = std::move(tokens);
    return drafts;
}

}  // namespace hark::whisper
