#include "gpt/engine/sequence.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {

Sequence::Sequence(const Context& ctx, const Model& model)
    : model_(model),
      cache_(make_cache(model.config, 1, model.precision.cache, ctx.arena.source())),
      logits_(static_cast<size_t>(model.config.n_vocab)) {}

Tensor Sequence::forward(Context& ctx, std::span<const int32_t> tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    require(n > 0 && n <= room(), "the model's context has room for ", room(), " tokens, found ",
            n);
    if (!model_.config.has_longrope()) return run(ctx, tokens);
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (!crosses_rope(n)) return run(ctx, tokens);
    // The keys in the cache were turned by the table of short sequences.
    length_ = 0;
    return run(ctx, tokens_);
}

bool Sequence::crosses_rope(int64_t n) const {
    const std::vector<RopeTable>& ropes = model_.config.ropes;
    return std::any_of(ropes.begin(), ropes.end(), [&](const RopeTable& rope) {
        return !rope.long_frequencies.empty() && length_ > 0 && length_ <= rope.original_length &&
               length_ + n > rope.original_length;
    });
}

Tensor Sequence::run(Context& ctx, std::span<const int32_t> tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    std::vector<int32_t> position(tokens.size());
    std::iota(position.begin(), position.end(), static_cast<int32_t>(length_));
    int32_t last = static_cast<int32_t>(n - 1);
    length_ += n;
    HostBatchLayout rows;
    rows.add(0, n, length_);
    const auto ids = [&](const int32_t* data, int64_t count) {
        return to_device(ctx, Tensor(const_cast<int32_t*>(data), Dtype::i32, {count}));
    };
    return model_(ctx, ids(tokens.data(), n), ids(position.data(), n), to_device(ctx, rows.view()),
                  ids(&last, 1), cache_);
}

std::span<float> Sequence::forward_to_host(Context& ctx, std::span<const int32_t> tokens) {
    const Scratch scratch(ctx);
    const Tensor logits = to_host(ctx, forward(ctx, tokens));
    std::copy_n(logits.as<float>(), logits_.size(), logits_.begin());
    return logits_;
}

}  // namespace hark::gpt
