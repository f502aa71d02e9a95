// Whisper's languages by their English names.
#pragma once

#include <string>

namespace hark::whisper {

// The code of a language given by its English name or another name it goes by, in any case:
// "German" -> "de", "flemish" -> "nl". Codes come back in small letters; what is neither comes back
// as it is, for the model alone knows all of its languages.
// Source: openai/whisper tokenizer.py, LANGUAGES and TO_LANGUAGE_CODE.
std::string language_code(const std::string& name);

}  // namespace hark::whisper
