// Measures and cuts of a window's text.
#pragma once

#include <string>

namespace hark::whisper {

// How well text compresses: bytes / bytes deflated by zlib's default level.
// Source: openai/whisper utils.py, compression_ratio. Empty text: 0 / 8, as there.
double compression_ratio(const std::string& text);

// The text without white space at its ends (Python's str.strip(), Unicode spaces too).
std::string strip(const std::string& text);

}  // namespace hark::whisper
