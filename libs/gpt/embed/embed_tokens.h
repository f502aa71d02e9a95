// From a text to the tokens whose vector is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hark {
class Tokenizer;
}

namespace hark::gpt {

struct Prompt;

struct EmbedStreamOptions {
    std::string before_text;  // is put before each text
    int64_t longest = 0;      // tokens of a text, at most
    bool truncate = false;    // cut what is longer, else it is an error
};

// A text's tokens, with the tokenizer's own around them. Notes in `text` what is wrong.
std::vector<int32_t> embed_tokens(const Tokenizer& tokenizer, const EmbedStreamOptions& options,
                                  Prompt& text);

}  // namespace hark::gpt
