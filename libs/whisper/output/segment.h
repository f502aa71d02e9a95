// Words, segments, and the segments of live input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hark::whisper {

struct Word {
    std::string text;           // with leading space and adjacent punctuation
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
    std::optional<std::vector<Word>> words;  // if requested
};

// Words in order, with the times of the recording.
struct LiveSegment {
    double start = 0, end = 0;  // seconds
    std::string text;           // its words', concatenated
    std::vector<Word> words;
};

// Text that is not final yet. Its first `committed` bytes will not change.
struct LivePartial {
    LiveSegment segment;
    size_t committed = 0;

    bool operator==(const LivePartial& other) const {
        return segment.text == other.segment.text && committed == other.committed;
    }
};

}  // namespace hark::whisper
