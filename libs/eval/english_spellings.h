// American spellings for British ones. Source: openai/whisper, EnglishSpellingNormalizer.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace hark {

// British words and their American spellings.
const std::unordered_map<std::string, std::string>& english_spellings();

// The words of the text, in lower case, with single spaces between, each in its American spelling
// where the table has one.
std::string normalize_english_spellings(std::string_view text);

}  // namespace hark
