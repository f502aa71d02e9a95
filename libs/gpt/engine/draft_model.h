// Tokens that a smaller model guesses for the engine's texts: speculative decoding.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace hark {
struct Context;
}

namespace hark::gpt {

struct BatchSequence;
struct Model;
class Sequence;

class DraftModel {
  public:
    // Tokens are below `vocabulary`, of both models. `context`: tokens of a text, at most; beyond
    // the model's own positions nothing is guessed. On a GPU it takes the memory of `texts` texts
    // at once, at most 16: none is left when the engine's cache has taken its own. Throws Error for
    // a smaller vocabulary, and if the memory is not free. Holds references.
    DraftModel(Context& ctx, const Model& model, int64_t vocabulary, int64_t context,
               int64_t texts);
    ~DraftModel();

    // At most `most` tokens that may follow the text, whose tokens the host knows: those that its
    // own sampler, with its draws, chooses from this model's logits. Fewer if the text is longer
    // than the context, or if the sampler refuses the logits. Throws OutOfMemory; other texts and
    // later calls may succeed.
    std::vector<int32_t> propose(const BatchSequence& text, int64_t most);

  private:
    struct Kept {
        uint64_t text = 0, last_use = 0;
        std::unique_ptr<Sequence> sequence;
    };
    // What this model has of the text; of another one if it has none.
    Sequence& sequence_of(uint64_t text);
    void add_sequence();

    Context& ctx_;
    const Model& model_;
    int64_t vocabulary_, context_;
    std::vector<Kept> kept_;
    uint64_t uses_ = 0;
};

}  // namespace hark::gpt
