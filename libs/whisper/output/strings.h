// Measures and edits a window's text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace hark::whisper {

// Compression ratio of text: bytes / bytes deflated at zlib's default level.
// Source: openai/whisper utils.py, compression_ratio. Empty text: 0 / 8, as there.
double compression_ratio(const std::string& text);

// The text without white space at its ends (Python's str.strip(), Unicode spaces too).
std::string strip(const std::string& text);

// The text on one line: a space replaces each control character except tab.
std::string one_line(std::string text);

// The highest number of consecutive repetitions of any run of tokens, if they have at least 8
// tokens in all; else 1.
int64_t repeats(std::span<const int32_t> text);

}  // namespace hark::whisper
