// Speculative decoding (Leviathan et al. 2022): a smaller model proposes tokens, which the large
// one checks in one pass. The text is always the large model's own greedy text.
#pragma once

#include <vector>

#include "whisper/transcribe/logit_constraints.h"
#include "whisper/transcribe/pass.h"
#include "whisper/transcribe/row.h"

namespace hark::whisper {

class Drafter {
  public:
    // Holds a reference to the model. Throws Error unless its vocabulary has n_vocab tokens.
    Drafter(const Model& model, int64_t n_vocab, int64_t windows, const MemorySource& memory);

    const Model& model() const { return model_; }
    void encode(Context& ctx, std::span<const int64_t> windows, Tensor mel);
    // At most `count` tokens that this model greedily appends to the row.
    std::vector<int32_t> propose(Context& ctx, const Row& row, const LogitConstraints& constraints,
                                 int64_t count);

  private:
    const Model& model_;
    Caches caches_;
    std::vector<std::vector<int32_t>> cached_;  // by window: the tokens in the cache
};

}  // namespace hark::whisper
