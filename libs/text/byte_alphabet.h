// The characters that stand for bytes in a byte-level vocabulary's files.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace hark {

// The character of each byte: printable Latin-1 for itself, the other bytes from U+0100 on in their
// order. Source: openai/gpt-2 src/encoder.py, bytes_to_unicode.
std::array<char32_t, 256> byte_alphabet();

// Bytes spelt in that alphabet, in UTF-8.
std::string spell_bytes(std::string_view bytes);

// The bytes that a token's spelling stands for. One with any other character, or that is not
// UTF-8, stands for itself, as in the tokenizers library.
std::string bytes_from_alphabet(const std::string& token);

}  // namespace hark
