// Whisper's languages by their English names.
#pragma once

#include <string>
#include <vector>

namespace hark::whisper {

// The code of a language given by its English name or another name it goes by, in any case:
// "German" -> "de", "flemish" -> "nl". Codes come back in small letters; what is neither comes back
// as it is, for the model alone knows all of its languages.
// Source: openai/whisper tokenizer.py, LANGUAGES and TO_LANGUAGE_CODE.
std::string language_code(const std::string& name);

// The code and all names of a language: "de", "German". Only the code, if it is not one of
// openai/whisper's.
std::vector<std::string> language_names(const std::string& code);

// The codes of the languages in the order of their tokens: 99, and "yue" of large-v3 and turbo.
// Source: openai/whisper tokenizer.py, LANGUAGES.
std::vector<std::string> language_codes();

}  // namespace hark::whisper
