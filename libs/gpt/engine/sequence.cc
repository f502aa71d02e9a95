#include "gpt/engine/sequence.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "kernels/batch_layout.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

constexpr int64_t kPrefillRows = 512, kPrefillRowsOnGpu = 2048;

int64_t prefill_rows(const Context& ctx, const SequenceOptions& options) {
    if (options.prefill_rows > 0) return options.prefill_rows;
    return ctx.on_cuda() ? kPrefillRowsOnGpu : kPrefillRows;
}

// A GPU's recorded steps and its fast kernels need one block at a fixed address.
KvCacheShape sequence_shape(const Context& ctx, const Model& model,
                            const SequenceOptions& options) {
    const int64_t positions = model.config.n_positions;
    require(options.context <= positions, "context: the model has ", positions, " positions (got ",
            options.context, "); give fewer tokens");
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
    length_ = 0;
    tokens_.clear();
}

int64_t Sequence::keep(int64_t n) {
    if (n == 0 || n > length_ || model_.config.has_longrope() || !cache_.holds(0, n)) {
        clear();
        return 0;
    }
    return length_ = n;
}

Tensor Sequence::forward(Context& ctx, std::span<const int32_t> tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    require(n > 0 && n <= room(), "the context has room for ", room(), " tokens, found ", n);
    if (!model_.config.has_longrope()) return run(ctx, tokens);
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (!crosses_rope(n)) return run(ctx, tokens);
    // The keys in the cache were turned by the table of short sequences.
    cache_.clear(0);
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
    const int64_t text_length = length_ + std::ssize(tokens);
    for (const auto rows = static_cast<size_t>(prefill_rows_); tokens.size() > rows;
         tokens = tokens.subspan(rows)) {
        const Scratch scratch(ctx);
        run_piece(ctx, tokens.first(rows), text_length);
    }
    return run_piece(ctx, tokens, text_length);
}

Tensor Sequence::run_piece(Context& ctx, std::span<const int32_t> tokens, int64_t text_length) {
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
    return model_(ctx, ids(tokens.data(), n), ids(position.data(), n), cache_.layouts(ctx, rows),
                  ids(&last, 1), cache_, text_length);
}

std::span<float> Sequence::forward_to_host(Context& ctx, std::span<const int32_t> tokens) {
    const Scratch scratch(ctx);
    const Tensor logits = to_host(ctx, forward(ctx, tokens));
    std::copy_n(logits.as<float>(), logits_.size(), logits_.begin());
    return logits_;
}

}  // namespace hark::gpt
