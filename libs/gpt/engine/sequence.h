// One sequence of tokens and its KV cache.
#pragma once

#include <span>
#include <vector>

#include "gpt/decoder/model.h"

namespace hark::gpt {

class Sequence {
  public:
    Sequence(const Context& ctx, const Model& model);

    // Appends tokens; returns the logits (1, n_vocab) of the last one, on the context's device, in
    // its arena. Throws Error for more than room() tokens.
    Tensor forward(Context& ctx, std::span<const int32_t> tokens);
    // The same on the host, valid until the next call.
    std::span<float> forward_to_host(Context& ctx, std::span<const int32_t> tokens);
    // Removes all tokens.
    void clear() {
        length_ = 0;
        tokens_.clear();
    }
    int64_t room() const { return model_.config.n_positions - length_; }
    KvCache& cache() { return cache_; }

  private:
    // Whether n more tokens make the sequence a long one for longrope.
    bool crosses_rope(int64_t n) const;
    Tensor run(Context& ctx, std::span<const int32_t> tokens);

    const Model& model_;
    KvCache cache_;
    int64_t length_ = 0;
    std::vector<int32_t> tokens_;  // all, if the model has longrope: they may be computed again
    std::vector<float> logits_;
};

}  // namespace hark::gpt
