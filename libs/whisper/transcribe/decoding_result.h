// The decoded text of a window.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hark::whisper {

struct DecodingResult {
    std::vector<int32_t> tokens;  // timestamps included, eot not
    std::string text;             // stripped
    double temperature = 0;
    double avg_logprob = 0;  // mean natural logarithm per token, eot included
    double no_speech_prob = 0;
    double compression_ratio = 0;
    int64_t repeats = 1;  // of the text tokens, see strings.h
};

}  // namespace hark::whisper
