// One sequence of tokens and its place in the model's cache.
#pragma once

#include <span>
#include <vector>

#include "gpt/decoder/model.h"

namespace hark::gpt {

class Session {
  public:
    Session(const Context& ctx, const Model& model);

    // Appends tokens and gives the logits (1, n_vocab) behind the last one, on the context's
    // device and in its arena. Throws Error where there are more than room().
    Tensor append(Context& ctx, std::span<const int32_t> tokens);
    // The same on the host, valid until the next call.
    std::span<float> feed(Context& ctx, std::span<const int32_t> tokens);
    // Forgets all tokens.
    void clear() { length_ = 0; }
    int64_t room() const { return model_.config.n_positions - length_; }
    KvCache& cache() { return cache_; }

  private:
    const Model& model_;
    KvCache cache_;
    int64_t length_ = 0;
    std::vector<float> logits_;
};

}  // namespace hark::gpt
