// Spoken English numbers in digits. Source: openai/whisper, EnglishNumberNormalizer in
// whisper/normalizers/english.py, whose every answer, odd ones too, is given here.
#pragma once

#include <string>
#include <string_view>

namespace hark {

// "two hundred and three dollars" -> "$203"; the text is in lower case. Numbers of any size keep
// all their digits; "one" alone stays a word.
std::string normalize_english_numbers(std::string_view text);

}  // namespace hark
