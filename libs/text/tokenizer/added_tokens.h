// Tokens that are found in the text itself, before a model sees it: <|im_end|>, runs of spaces.
// Source: huggingface/tokenizers, tokenizers/src/tokenizer/added_vocabulary.rs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/prefix_index.h"

namespace hark {

struct AddedToken {
    std::string content;
    int32_t id = 0;
    bool special = false;      // gives no text when decoded
    bool left_strip = false;   // takes the white space before it
    bool right_strip = false;  // and after it
    bool single_word = false;  // is not part of a longer word
    bool normalized = false;   // is found in normalised text
    bool operator==(const AddedToken&) const = default;
};

// The parts of a text in which special tokens count, in order and not touching.
struct TrustedRanges {
    std::vector<std::pair<size_t, size_t>> ranges;

    static TrustedRanges all() { return {{{0, SIZE_MAX}}}; }
    bool none() const { return ranges.empty(); }
    bool everything() const { return ranges.size() == 1 && ranges[0].second == SIZE_MAX; }
    // Whether one of them has all of [begin, end).
    bool cover(size_t begin, size_t end) const;
};

class AddedTokenFinder {
  public:
    AddedTokenFinder() = default;
    explicit AddedTokenFinder(std::vector<AddedToken> tokens);

    // Calls part(begin, end, token) for the text's parts in order: token is nullptr for text. Of
    // tokens that begin at one place the longest counts. Special ones count in `trusted` alone.
    using Part = std::function<void(size_t begin, size_t end, const AddedToken* token)>;
    void split(std::string_view text, const TrustedRanges& trusted, const Part& part) const;

  private:
    std::vector<AddedToken> tokens_;
    PrefixIndex index_;
};

}  // namespace hark
