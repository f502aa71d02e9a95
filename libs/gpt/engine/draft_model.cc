#include "gpt/engine/draft_model.h"

#include <algorithm>
#include <span>

#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/batch_sequence.h"
#include "gpt/engine/sequence.h"

namespace hark::gpt {
namespace {

// Texts that are guessed at once, at most: more have no room for guesses in a pass.
constexpr size_t kMostTexts = 16;
constexpr uint64_t kNoText = ~uint64_t{0};

}  // namespace

DraftModel::DraftModel(Context& ctx, const Model& model, int64_t vocabulary, int64_t context,
                       int64_t texts)
    : ctx_(ctx),
      model_(model),
      vocabulary_(vocabulary),
      context_(std::min(context, model.config.n_positions)) {
    require(model.config.n_vocab >= vocabulary, "the draft model has ", model.config.n_vocab,
            " tokens, the model ", vocabulary, ": they must share their vocabulary");
    if (ctx.on_cuda())
        while (std::ssize(kept_) < texts && kept_.size() < kMostTexts) add_sequence();
}

DraftModel::~DraftModel() = default;

void DraftModel::add_sequence() {
    kept_.push_back(
        {kNoText, 0, std::make_unique<Sequence>(ctx_, model_, SequenceOptions{context_})});
}

Sequence& DraftModel::sequence_of(uint64_t text) {
    auto found = std::find_if(kept_.begin(), kept_.end(),
                              [&](const Kept& kept) { return kept.text == text; });
    if (found == kept_.end() && kept_.size() < kMostTexts && !ctx_.on_cuda()) {
        add_sequence();
        found = kept_.end() - 1;
    }
    if (found == kept_.end())
        found = std::min_element(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) {
            return a.last_use < b.last_use;
        });
    found->text = text;
    found->last_use = ++uses_;
    return *found->sequence;
}

std::vector<int32_t> DraftModel::propose(const BatchSequence& text, int64_t most) {
    const std::vector<int32_t>& tokens = text.tokens();
    std::vector<int32_t> drafts;
    if (most <= 0 || std::ssize(tokens) > context_) return drafts;
    Sequence& sequence = sequence_of(text.id);
    Sampler sampler = text.sampler;
    std::vector<float> logits;
    const int64_t known = sequence.keep_beginning_of(tokens);
    std::span<const int32_t> fresh = std::span(tokens).subspan(static_cast<size_t>(known));
    while (true) {
        const std::span<const float> row = sequence.forward_to_host(ctx_, fresh);
        logits.assign(row.begin(), row.begin() + vocabulary_);
        try {
            drafts.push_back(sampler(logits));
        } catch (const Error&) {
            return drafts;  // NaN, or nothing that the constraint allows: a guess less
        }
        if (std::ssize(drafts) == most || sequence.room() == 0) return drafts;
        fresh = std::span(drafts).last(1);
    }
}

}  // namespace hark::gpt
