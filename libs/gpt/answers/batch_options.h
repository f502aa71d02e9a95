// The flags of many texts at once.
#pragma once

#include <optional>
#include <string>

#include "core/cli/cli.h"

namespace hark {
class Communicator;
struct Context;
}  // namespace hark

namespace hark::gpt {

struct BatchAnswererOptions;
struct EngineOptions;

// Registers --batch-invariant.
Flag add_batch_invariant(Flags& flags, bool& value);

// Throws Error if a text's bits must depend on no others, but these ranks' sums do.
void check_independent_sums(const Context& ctx, const Communicator& ranks);

class BatchOptions {
  public:
    void flags(Flags& flags);

    // Sets what the context computes a row's bits from.
    void apply_to(Context& ctx) const;
    // How many texts are computed at once; 1: one after another. `waits`: the writer of the input
    // may wait for each answer, and prompts are begun together only if they have come together.
    int64_t sequences(const Context& ctx, bool waits) const;
    EngineOptions engine(const Context& ctx, bool waits, int64_t context) const;
    // That of `processes` which compute together, from a file that has all of the input or not.
    bool waits(const Context& ctx, int processes, bool is_file) const;
    BatchAnswererOptions answerer(const Context& ctx) const;
    void check() const;  // throws UsageError
    bool drafts() const { return lookup_tokens_ > 0 || !draft_model_.empty(); }
    // Of the model that proposes tokens; empty: none.
    const std::string& draft_model() const { return draft_model_; }

  private:
    int64_t max_sequences_ = 0;
    double memory_fraction_ = 0.9;
    int64_t lookup_tokens_ = 0;
    std::string draft_model_;
    std::optional<int64_t> draft_tokens_;
    bool unordered_ = false, batch_invariant_ = false;
};

}  // namespace hark::gpt
