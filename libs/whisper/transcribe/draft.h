// Speculative decoding (Leviathan et al. 2022): a smaller model guesses tokens, which the large one
// checks in one pass. The text is the large model's own greedy text, whatever is guessed.
#pragma once

#include <vector>

#include "whisper/transcribe/logit_constraints.h"
#include "whisper/transcribe/pass.h"
#include "whisper/transcribe/row.h"

namespace hark::whisper {

class Drafter {
  public:
    // Holds a reference to the model. Throws Error where its vocabulary is another than n_vocab.
    Drafter(const Model& model, int64_t n_vocab, int64_t windows, const MemorySource& memory);

    const Model& model() const { return model_; }
    void encode(Context& ctx, std::span<const int64_t> windows, Tensor mel);
    // The next `count` tokens, at most, that this model takes greedily behind the row.
    std::vector<int32_t> propose(Context& ctx, const Row& row, const Rules& rules, int64_t count);

  private:
    const Model& model_;
    Caches caches_;
    std::vector<std::vector<int32_t>> cached_;  // by window: the tokens whose keys are there
};

}  // namespace hark::whisper
