#include "gpt/answers/batch_options.h"

#include "gpt/answers/batch_answerer.h"
#include "gpt/engine/engine.h"
#include "kernels/comm/communicator.h"
#include "kernels/ops.h"

namespace hark::gpt {
namespace {

constexpr int64_t kMost = 4096, kMostDrafts = kFewQueries - 1, kDrafts = 4;

}  // namespace

Flag add_batch_invariant(Flags& flags, bool& value) {
    return flags
        .add_switch("batch-invariant", value,
                    "an answer's bytes do not depend on other prompts; slower")
        .details(
            "Without it the last bits of a GPU's sums, and with them now and then a token, depend "
            "on what is computed together.");
}

void check_independent_sums(const Context& ctx, const Communicator& ranks) {
    require(ranks.has_independent_sums() || !ctx.has_independent_rows(),
            "--batch-invariant takes two GPUs at most, or GPUs that access one another's memory "
            "(got ",
            ranks.size(), "): else the order of a sum depends on how many rows are computed");
}

void BatchOptions::flags(Flags& flags) {
    flags.section("Many prompts");
    flags
        .add("max-sequences", max_sequences_,
             "N answers at once, for --input-format lines and jsonl; 0: see below", 0, kMost)
        .own_variable()
        .details(
            "0: 16 on the CPU; on a GPU 256 if stdin is a file, else 1. 1: one answer after "
            "another. On a GPU with more than 1, prompts are begun when as many have come or the "
            "input has ended, so that the same input gives the same bytes; a program that waits "
            "for each answer needs --max-sequences 1 or --batch-invariant there.");
    flags.add_switch("unordered", unordered_, "write answers as they end, not in their order");
    add_batch_invariant(flags, batch_invariant_);
    flags
        .add("prompt-lookup", lookup_tokens_,
             "N tokens proposed at once from the text so far; 0: none", 0, kMostDrafts)
        .own_variable()
        .details(
            "Those that followed the last earlier place with the same two or three tokens; one "
            "pass checks all of them. Answers that repeat their prompt, as summaries and edits "
            "do, come in fewer passes. The text is the same; on a GPU without --batch-invariant "
            "the last bits of sums may differ. Many answers at once have fewer guesses.");
    flags.add_name("draft-model", draft_model_, "MODEL smaller model that proposes tokens")
        .own_variable()
        .completes(Completes::model)
        .details(
            "It needs the same tokenizer. One pass of the model checks what it proposes, and keeps "
            "the tokens that it would have chosen itself: the text is that without it, as with "
            "--prompt-lookup.");
    flags
        .add("draft-tokens", draft_tokens_, "N tokens that the draft model proposes at once", 1,
             kMostDrafts)
        .own_variable()
        .shows_default(concat(kDrafts));
    flags
        .add("memory-fraction", memory_fraction_,
             "F of the memory that is free after the weights, for keys and values", 0.01, 1.0)
        .own_variable();
}

void BatchOptions::check() const {
    require_usage(!draft_tokens_ || !draft_model_.empty(), "--draft-tokens: needs --draft-model");
    require_usage(draft_model_.empty() || lookup_tokens_ == 0,
                  "--draft-model and --prompt-lookup exclude each other");
}

void BatchOptions::apply_to(Context& ctx) const {
    ctx.batch_invariant = ctx.few_row_products = batch_invariant_;
}

bool BatchOptions::waits(const Context& ctx, int processes, bool is_file) const {
    return !is_file && (processes > 1 || (ctx.on_cuda() && !batch_invariant_));
}

int64_t BatchOptions::sequences(const Context& ctx, bool waits) const {
    if (max_sequences_ > 0) return max_sequences_;
    return waits ? 1 : default_sequences(ctx);
}

EngineOptions BatchOptions::engine(const Context& ctx, bool waits, int64_t context) const {
    return {
        .max_sequences = sequences(ctx, waits),
        .context = context,
        .memory_fraction = memory_fraction_,
        .draft_tokens = draft_model_.empty() ? lookup_tokens_ : draft_tokens_.value_or(kDrafts)};
}

// On the CPU a text's bits do not depend on the others.
BatchAnswererOptions BatchOptions::answerer(const Context& ctx) const {
    return {.unordered = unordered_,
            .takes_what_has_come = !ctx.on_cuda() || ctx.has_independent_rows()};
}

}  // namespace hark::gpt
