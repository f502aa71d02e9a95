// Whisper's text normalisers: what is compared when word error rates are counted.
// Source: openai/whisper, whisper/normalizers/basic.py and english.py; the same text comes out.
#pragma once

#include <string>
#include <string_view>

namespace hark {

struct BasicNormalizerOptions {
    bool remove_diacritics = false;  // letters without their marks: "é" -> "e"
    bool split_letters = false;      // every grapheme a word, for scripts without spaces
};

// For any language: lower case, without text in brackets, symbols and punctuation as spaces.
std::string normalize_basic(std::string_view text, const BasicNormalizerOptions& options = {});

// For English: also contractions and titles spelt out, numbers in digits, American spellings.
std::string normalize_english(std::string_view text);

}  // namespace hark
