// One sequence of tokens and its key/value cache.
#pragma once

#include <span>
#include <vector>

#include "nn/kv_cache.h"

namespace hark::gpt {

struct Model;

struct SequenceOptions {
    int64_t context = 0;       // tokens, at most; 0: as many as the model has positions
    int64_t prefill_rows = 0;  // of a prompt at once, at most; 0: prompt_rows()
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
    // Removes all tokens but those that `prompt` begins with, without its last one. Returns how
    // many are left: none if the cache has given back keys that the next token would read, or if
    // its keys have longrope's table of a longer text.
    int64_t keep_beginning_of(std::span<const int32_t> prompt);
    // The tokens that forward() has appended. On a GPU the cache has keys of later ones too.
    const std::vector<int32_t>& tokens() const { return tokens_; }
    // Replaces all tokens; the caller sets their keys and values, from first[g] on in group g.
    void start_with(std::span<const int32_t> tokens, std::span<const int64_t> first);
    int64_t context() const { return cache_.capacity(); }
    int64_t length() const { return std::ssize(tokens_); }
    int64_t room() const { return context() - length(); }
    const Model& model() const { return model_; }
    const KvCache& cache() const { return cache_; }
    KvCache& cache() { return cache_; }

  private:
    // Whether n more tokens make the sequence a long one for longrope.
    bool crosses_rope(int64_t n) const;
    // Whether the keys of the first n tokens are those of a text that has few more: longrope's
    // table depends on the text's length.
    bool has_rope_of(int64_t n) const;
    // Computes the tokens from number `first` on.
    Tensor run(Context& ctx, int64_t first);
    // The tokens [first, end).
    Tensor run_piece(Context& ctx, int64_t first, int64_t end);

    const Model& model_;
    int64_t prefill_rows_;
    KvCache cache_;
    std::vector<int32_t> tokens_;
    std::vector<float> logits_;
};

}  // namespace hark::gpt
