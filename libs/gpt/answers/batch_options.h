// The flags of many texts at once.
#pragma once

#include "core/cli.h"
#include "core/context.h"
#include "gpt/answers/batch_answerer.h"

namespace hark::gpt {

class BatchOptions {
  public:
    void flags(Flags& flags);

    // Sets what the context computes a row's bits from.
    void apply_to(Context& ctx) const;
    // How many texts are computed at once; 1: one after another. `is_file`: all of the input is
    // there from the beginning.
    int64_t sequences(const Context& ctx, bool is_file) const;
    EngineOptions engine(const Context& ctx, bool is_file, int64_t context) const;
    BatchAnswererOptions answerer(const Context& ctx) const;
    bool drafts() const { return draft_tokens_ > 0; }

  private:
    int64_t max_sequences_ = 0;
    double memory_fraction_ = 0.9;
    int64_t draft_tokens_ = 0;
    bool unordered_ = false, batch_invariant_ = false;
};

}  // namespace hark::gpt
