// Measures and cuts of a window's text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace hark::whisper {

// How well text compresses: bytes / bytes deflated by zlib's default level.
// Source: openai/whisper utils.py, compression_ratio. Empty text: 0 / 8, as there.
double compression_ratio(const std::string& text);

// The text without white space at its ends (Python's str.strip(), Unicode spaces too).
std::string strip(const std::string& text);

// The text with a space for every control character but the tab: no line of it ends early.
std::string one_line(std::string text);

// How many times a run of tokens, 8 tokens in all at least, stands in the text back to back: the
// most of any run, 1 where none comes twice.
int64_t repeats(std::span<const int32_t> text);

}  // namespace hark::whisper
