// Names and codes of Whisper's languages.
#pragma once

#include <string>
#include <vector>

namespace hark::whisper {

// The code of a language's English name or alias, in any case: "German" -> "de", "flemish" -> "nl".
// Codes are lower-cased. Other text is returned unchanged: only the model knows all its languages.
// Source: openai/whisper tokenizer.py, LANGUAGES and TO_LANGUAGE_CODE.
std::string language_code(const std::string& name);

// The code of a language, its name and its aliases: "es", "Spanish", "Castilian". The code alone if
// openai/whisper has no such language.
std::vector<std::string> language_names(const std::string& code);

// The codes of the languages in the order of their tokens: 99, and "yue" of large-v3 and turbo.
// Source: openai/whisper tokenizer.py, LANGUAGES.
std::vector<std::string> language_codes();

}  // namespace hark::whisper
