// What a transcript is made of: words, segments, and the segments of live input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hark::whisper {

struct Word {
    std::string text;           // with its leading space and the punctuation beside it
    double start = 0, end = 0;  // seconds
    double probability = 0;     // mean of its tokens'
};

struct Segment {
    int64_t seek = 0;           // the window's first frame, 10 ms each
    double start = 0, end = 0;  // seconds
    std::string text;
    std::vector<int32_t> tokens;  // timestamps included
    double temperature = 0, avg_logprob = 0, compression_ratio = 0, no_speech_prob = 0;
    std::string language;
    std::optional<std::vector<Word>> words;  // where they were asked for
};

// Words in order, with the times of the recording.
struct LiveSegment {
    double start = 0, end = 0;  // seconds
    std::string text;           // its words' laid end to end
    std::vector<Word> words;
};

// What is said and not yet final. It begins with the `agreed` bytes that stay as they are.
struct LivePartial {
    LiveSegment segment;
    size_t agreed = 0;

    bool operator==(const LivePartial& other) const {
        return segment.text == other.segment.text && agreed == other.agreed;
    }
};

}  // namespace hark::whisper
