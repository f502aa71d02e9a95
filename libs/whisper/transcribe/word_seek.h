// Where the next window begins by a window's words, and which of its segments look invented.
// Pure functions over segments with words. Source: openai/whisper transcribe.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {

// A decoded window of a recording. Frames are 10 ms each.
struct WordWindow {
    int64_t seek = 0, size = 0;
    int64_t next_seek = 0;       // where its timestamps would have the next window begin
    int64_t content_frames = 0;  // of the recording
    bool single_ending = false;  // see WindowSlices
    double last_speech = 0;      // seconds: where the last word before the window ended
};

struct WordSeek {
    int64_t seek = 0;      // the next window's first frame, always behind this one's
    bool discard = false;  // decode again from `seek`: nothing of this window counts
    size_t kept = 0;       // segments that stay
};

// The next window begins behind the last word. With `silence`, the silence around a segment whose
// words look invented (unlikely, very short or very long) is skipped where it is longer than that
// many seconds, and the segment with all that follow is dropped and decoded again.
WordSeek seek_by_words(std::span<const Segment> segments, const WordWindow& window,
                       std::optional<double> silence);

// The end of the last word; where there are no words that of the last segment; nullopt where there
// are no segments. (utils.py, get_end)
std::optional<double> end_of_words(std::span<const Segment> segments);

// Whether the segment's first words look invented. (is_segment_anomaly)
bool looks_invented(const Segment& segment);

}  // namespace hark::whisper
