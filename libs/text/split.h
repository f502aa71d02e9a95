// The tokenizers' first step: text cut into words, inside which byte pairs merge.
// All text is valid UTF-8 unless said otherwise.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace hark {

// What GPT-2's pattern tells apart: \s, \p{L}, \p{N} and everything else.
enum class CharClass : uint8_t { space, letter, number, other };

CharClass class_of(char32_t code_point);

// Where the word that begins at `at` ends, by GPT-2's pattern. It depends on nothing before
// `at`. Source: openai/gpt-2 src/encoder.py.
size_t word_end(std::string_view text, size_t at);

// The words of `text`, in order; laid end to end they are the text, which must outlive them.
std::vector<std::string_view> split_words(std::string_view text);

// The last place at which a text that continues after `text` can be cut so that the words of the
// two parts are the words of the whole; 0 if there is none. The text need not be valid UTF-8: bytes
// that are not are seen as U+FFFD.
size_t last_word_cut(std::string_view text);

}  // namespace hark
