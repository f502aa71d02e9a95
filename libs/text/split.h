// The tokenizers' first step: text cut into words, inside which byte pairs merge.
#pragma once

#include <string_view>
#include <vector>

namespace hark {

// The words of `text` by GPT-2's pattern, in order; laid end to end they are the text, which must
// be valid UTF-8 and outlive them. Source: openai/gpt-2 src/encoder.py.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace hark
