#include "gpt/engine/model_rows.h"

#include <algorithm>

#include "core/error.h"
#include "core/profile/profile.h"
#include "gpt/decoder/model.h"
#include "kernels/batch_layout.h"
#include "kernels/gradients.h"
#include "kernels/runtime/transfer.h"

namespace hark::gpt {
namespace {

constexpr int64_t kPassRows = 512, kPassRowsOnGpu = 2048;
// Logits in memory at once: 128 MB on the CPU, 1 GB on a GPU.
constexpr int64_t kLogitsAtOnce = 1 << 25, kLogitsAtOnceOnGpu = 1 << 28;

Tensor view(std::span<const int32_t> ids) {
    return Tensor(const_cast<int32_t*>(ids.data()), Dtype::i32, {std::ssize(ids)});
}

}  // namespace

ModelRows::ModelRows(Context& ctx, const Model& model, int64_t most_rows)
    : ctx_(ctx),
      model_(model),
      most_rows_(most_rows > 0   ? most_rows
                 : ctx.on_cuda() ? kPassRowsOnGpu
                                 : kPassRows) {}

ModelRows::~ModelRows() = default;

void ModelRows::states(const PackedRows& rows, const UseStates& use) {
    for (int64_t begin = 0; begin < rows.size();) {
        const int64_t end = group_end(rows, begin);
        run_group(rows, begin, end, use);
        begin = end;
    }
}

// On a GPU each slot of the cache is as long as the longest sequence: together they have the
// tokens of a pass. longrope: the length of a text chooses its table.
int64_t ModelRows::group_end(const PackedRows& rows, int64_t begin) const {
    int64_t longest = 0, sequences = 0, at = begin;
    while (at < rows.size()) {
        const int64_t next = rows.end[static_cast<size_t>(at)];
        longest = std::max(longest, next - at);
        if (++sequences > 1 && (sequences * longest > most_rows_ || model_.config.has_longrope()))
            break;
        at = next;
    }
    return at;
}

void ModelRows::make_cache(int64_t sequences, int64_t longest) {
    const int64_t positions = model_.config.n_positions;
    require(longest <= positions, "the model has ", positions, " positions; found a text of ",
            longest, " tokens");
    if (cache_ && sequences <= slots_ && longest <= cache_->capacity()) return;
    cache_.reset();
    // The CPU's blocks take memory as the texts grow.
    slots_ = ctx_.on_cuda() ? sequences : most_rows_;
    KvCacheShape shape =
        cache_shape(model_.config, model_.precision.cache, ctx_.on_cuda() ? longest : positions);
    shape.sequences = slots_;
    shape.block = ctx_.on_cuda() ? 0 : kBlockTokens;
    shape.most_rows = most_rows_;
    cache_ = std::make_unique<KvCache>(shape, ctx_.arena.source());
}

void ModelRows::run_group(const PackedRows& rows, int64_t begin, int64_t end,
                          const UseStates& use) {
    int64_t longest = 0;
    int32_t slots = 0;
    slot_of_row_.clear();
    for (int64_t at = begin; at < end; at = rows.end[static_cast<size_t>(at)]) {
        const int64_t length = rows.end[static_cast<size_t>(at)] - at;
        longest = std::max(longest, length);
        slot_of_row_.resize(slot_of_row_.size() + static_cast<size_t>(length), slots++);
    }
    make_cache(slots, longest);
    for (int64_t at = begin; at < end; at += most_rows_)
        run_pass(rows, at, std::min(end, at + most_rows_), begin, use);
    for (int32_t slot = 0; slot < slots; ++slot) cache_->clear(slot);
}

void ModelRows::run_pass(const PackedRows& rows, int64_t begin, int64_t end, int64_t group,
                         const UseStates& use) {
    const Scratch scratch(ctx_);
    HostBatchLayout layout;
    int64_t text_length = 0;
    for (int64_t at = begin; at < end;) {
        const auto row = static_cast<size_t>(at);
        const int64_t next = std::min<int64_t>(end, rows.end[row]);
        layout.add(slot_of_row_[static_cast<size_t>(at - group)], next - at,
                   next - rows.first[row]);
        text_length = std::max<int64_t>(text_length, rows.end[row] - rows.first[row]);
        at = next;
    }
    std::vector<int32_t> wanted, numbers;
    for (int64_t at = begin; at < end; ++at) {
        if (rows.targets[static_cast<size_t>(at)] < 0) continue;
        wanted.push_back(static_cast<int32_t>(at - begin));
        numbers.push_back(static_cast<int32_t>(at));
    }
    if (numbers.empty()) wanted.push_back(0);  // a pass has an output
    const auto part = [&](const std::vector<int32_t>& of) {
        return to_device(ctx_, view(std::span(of).subspan(static_cast<size_t>(begin),
                                                          static_cast<size_t>(end - begin))));
    };
    const Tensor tokens = part(rows.tokens);
    const Stage stage(ctx_, "gpt", tokens);
    const ProfileSpan span("prefill");
    const Tensor states =
        model_.states(ctx_, tokens, part(rows.position), cache_->layouts(ctx_, layout),
                      to_device(ctx_, view(wanted)), *cache_, text_length);
    if (!numbers.empty()) use(numbers, states);
}

std::vector<float> ModelRows::losses(const PackedRows& rows) {
    std::vector<float> all(rows.tokens.size(), 0);
    states(rows, [&](std::span<const int32_t> numbers, Tensor states) {
        std::vector<int32_t> targets;
        for (const int32_t row : numbers) targets.push_back(rows.targets[static_cast<size_t>(row)]);
        for_logits(ctx_, model_, states, [&](int64_t begin, Tensor logits) {
            const auto n = static_cast<size_t>(logits.dim(0)), from = static_cast<size_t>(begin);
            Tensor losses = ctx_.arena.tensor(Dtype::f32, {logits.dim(0)});
            cross_entropy(ctx_, losses, logits,
                          to_device(ctx_, view(std::span(targets).subspan(from, n))),
                          model_.config.n_vocab, 0);
            const Tensor found = to_host(ctx_, losses);
            for (size_t i = 0; i < n; ++i)
                all[static_cast<size_t>(numbers[from + i])] = found.as<float>()[i];
        });
    });
    return all;
}

int64_t logits_at_once(const Context& ctx, int64_t columns, int64_t rows) {
    const int64_t at_once = ctx.on_cuda() ? kLogitsAtOnceOnGpu : kLogitsAtOnce;
    return std::clamp<int64_t>(at_once / columns, 1, std::max<int64_t>(1, rows));
}

void for_logits(Context& ctx, const Model& model, Tensor states,
                const std::function<void(int64_t begin, Tensor logits)>& use) {
    const int64_t columns = model.config.n_vocab, rows = states.dim(0);
    const int64_t most = logits_at_once(ctx, columns, rows);
    // Parts of about the same size: quantised products of few rows are rounded in another way.
    const int64_t parts = (rows + most - 1) / most;
    for (int64_t i = 0; i < parts; ++i) {
        const Scratch scratch(ctx);
        const int64_t begin = rows * i / parts, end = rows * (i + 1) / parts;
        Tensor logits = ctx.arena.tensor(Dtype::f32, {end - begin, columns});
        model.head(ctx, logits, states.slice(begin, end));
        use(begin, logits);
    }
}

}  // namespace hark::gpt
