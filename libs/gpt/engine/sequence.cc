#include "gpt/engine/sequence.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/prompt_pieces.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

int64_t prefill_rows(const Context& ctx, const SequenceOptions& options) {
    return options.prefill_rows > 0 ? options.prefill_rows : prompt_rows(ctx);
}

// A GPU's recorded steps and its fast kernels need one block at a fixed address.
KvCacheShape sequence_shape(const Context& ctx, const Model& model,
                            const SequenceOptions& options) {
    const int64_t positions = model.config.n_positions;
    require(options.context <= positions, "--context: expected at most the model's ", positions,
            " positions, got ", options.context);
    KvCacheShape shape = cache_shape(model.config, model.precision.cache,
                                     options.context > 0 ? options.context : positions);
    shape.block = ctx.on_cuda() ? 0 : kBlockTokens;
    shape.most_rows = prefill_rows(ctx, options);
    return shape;
}

}  // namespace

Sequence::Sequence(const Context& ctx, const Model& model, const SequenceOptions& options)
    : model_(model),
      prefill_rows_(prefill_rows(ctx, options)),
      cache_(sequence_shape(ctx, model, options), ctx.arena.source()),
      logits_(static_cast<size_t>(model.config.n_vocab)) {}

void Sequence::clear() {
    cache_.clear(0);
    tokens_.clear();
}

int64_t Sequence::keep_beginning_of(std::span<const int32_t> prompt) {
    const auto shared =
        std::mismatch(tokens_.begin(), tokens_.end(), prompt.begin(), prompt.end()).second;
    const int64_t n = std::min(shared - prompt.begin(), std::ssize(prompt) - 1);
    if (n <= 0 || !cache_.holds(0, n) || !has_rope_of(n)) {
        clear();
        return 0;
    }
    tokens_.resize(static_cast<size_t>(n));
    return n;
}

bool Sequence::has_rope_of(int64_t n) const {
    const std::vector<RopeTable>& ropes = model_.config.ropes;
    return std::all_of(ropes.begin(), ropes.end(), [&](const RopeTable& rope) {
        const bool has_two = !rope.long_frequencies.empty();
        return !has_two || length() <= rope.original_length || n > rope.original_length;
    });
}

void Sequence::start_with(std::span<const int32_t> tokens, std::span<const int64_t> first) {
    cache_.start_with(0, first, std::ssize(tokens));
    tokens_.assign(tokens.begin(), tokens.end());
}

Tensor Sequence::forward(Context& ctx, std::span<const int32_t> tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    require(n > 0 && n <= room(), "the context has room for ", room(), " tokens, found ", n);
    const bool crosses = crosses_rope(n);
    const int64_t first = crosses ? 0 : length();
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    // The keys in the cache were turned by the table of short sequences.
    if (crosses) cache_.clear(0);
    try {
        return run(ctx, first);
    } catch (...) {
        clear();  // not all tokens have keys
        throw;
    }
}

bool Sequence::crosses_rope(int64_t n) const {
    const std::vector<RopeTable>& ropes = model_.config.ropes;
    return std::any_of(ropes.begin(), ropes.end(), [&](const RopeTable& rope) {
        return !rope.long_frequencies.empty() && length() > 0 && length() <= rope.original_length &&
               length() + n > rope.original_length;
    });
}

Tensor Sequence::run(Context& ctx, int64_t first) {
    for (int64_t rows = 0; length() - first > prefill_rows_; first += rows) {
        const Scratch scratch(ctx);
        rows = prompt_piece(length() - first, prefill_rows_, fewest_prompt_rows(ctx));
        run_piece(ctx, first, first + rows);
    }
    return run_piece(ctx, first, length());
}

Tensor Sequence::run_piece(Context& ctx, int64_t first, int64_t end) {
    const int64_t n = end - first;
    std::vector<int32_t> position(static_cast<size_t>(n));
    std::iota(position.begin(), position.end(), static_cast<int32_t>(first));
    int32_t last = static_cast<int32_t>(n - 1);
    HostBatchLayout rows;
    rows.add(0, n, end);
    const auto ids = [&](const int32_t* data, int64_t count) {
        return to_device(ctx, Tensor(const_cast<int32_t*>(data), Dtype::i32, {count}));
    };
    return model_(ctx, ids(tokens_.data() + first, n), ids(position.data(), n),
                  cache_.layouts(ctx, rows), ids(&last, 1), cache_, length());
}

std::span<float> Sequence::forward_to_host(Context& ctx, std::span<const int32_t> tokens) {
    const Scratch scratch(ctx);
    const Tensor logits = to_host(ctx, forward(ctx, tokens));
    std::copy_n(logits.as<float>(), logits_.size(), logits_.begin());
    return logits_;
}

}  // namespace hark::gpt
