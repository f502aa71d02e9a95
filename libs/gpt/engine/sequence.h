// One sequence of tokens and its key/value cache.
#pragma once

#include <span>
#include <vector>

#include "gpt/decoder/model.h"

namespace hark::gpt {

struct SequenceOptions {
    int64_t context = 0;       // tokens, at most; 0: as many as the model has positions
    int64_t prefill_rows = 0;  // of a prompt at once, at most; 0: 512, on a GPU 2048
};

class Sequence {
  public:
    // Throws Error for a context that is longer than the model's.
    Sequence(const Context& ctx, const Model& model, const SequenceOptions& options = {});

    // Appends tokens; returns the logits (1, n_vocab) of the last one, on the context's device, in
    // its arena. Many tokens are computed in pieces of prefill_rows. Throws Error for more than
    // room() tokens.
    Tensor forward(Context& ctx, std::span<const int32_t> tokens);
    // The same on the host, valid until the next call.
    std::span<float> forward_to_host(Context& ctx, std::span<const int32_t> tokens);
    // Removes all tokens.
    void clear();
    // Removes the tokens after the first n. Returns n, or 0 if all had to be removed: the cache has
    // given back keys that the next token would read, or longrope's keys depend on the length.
    int64_t keep(int64_t n);
    int64_t context() const { return cache_.capacity(); }
    int64_t room() const { return context() - length_; }
    const KvCache& cache() const { return cache_; }

  private:
    // Whether n more tokens make the sequence a long one for longrope.
    bool crosses_rope(int64_t n) const;
    Tensor run(Context& ctx, std::span<const int32_t> tokens);
    // A piece of a text that will have text_length tokens.
    Tensor run_piece(Context& ctx, std::span<const int32_t> tokens, int64_t text_length);

    const Model& model_;
    int64_t prefill_rows_;
    KvCache cache_;
    int64_t length_ = 0;
    std::vector<int32_t> tokens_;  // all, if the model has longrope: they may be computed again
    std::vector<float> logits_;
};

}  // namespace hark::gpt
