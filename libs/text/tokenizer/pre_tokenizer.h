// Text cut into the words that a model encodes one by one, as tokenizer.json's pre_tokenizer says.
// Source: huggingface/tokenizers, tokenizers/src/pre_tokenizers and tokenizer/pattern.rs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/pattern.h"

namespace hark {

// A part of a text.
struct TextChunk {
    std::string_view text;
    bool first = false;  // it begins at the input's first byte
};
using EmitText = std::function<void(const TextChunk&)>;

class PreTokenStep {
  public:
    virtual ~PreTokenStep() = default;
    // Emits the chunk's parts in order, none of them empty. They are valid during the call.
    virtual void apply(const TextChunk& chunk, const EmitText& emit) const = 0;
};
using PreTokenSteps = std::vector<std::shared_ptr<const PreTokenStep>>;

// What becomes of a match: a part of its own, nothing, a part with its neighbour, or one with the
// matches next to it.
enum class SplitBehavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

// Cuts by a pattern; inverted, what is between matches counts as the match.
std::shared_ptr<const PreTokenStep> split_step(Pattern pattern, SplitBehavior behavior,
                                               bool invert);
// Puts a space before a chunk that does not begin with one: ByteLevel's add_prefix_space.
std::shared_ptr<const PreTokenStep> prefix_space_step();

enum class PrependScheme { always, first, never };
// Spaces become `replacement`, a character, which is put first by the scheme; `split` cuts before
// each of them.
std::shared_ptr<const PreTokenStep> metaspace_step(std::string replacement, PrependScheme scheme,
                                                   bool split);

// Applies the steps from `step` on to a chunk.
void pre_tokenize(const PreTokenSteps& steps, const TextChunk& chunk, const EmitText& emit,
                  size_t step = 0);

}  // namespace hark
