// Where the next window begins according to a window's words, and which segments look hallucinated.
// Pure functions over segments with words. Source: openai/whisper transcribe.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {

// A decoded window of a recording. A frame is 10 ms.
struct WordWindow {
    int64_t seek = 0, size = 0;
    int64_t next_seek = 0;       // the next window's first frame according to the timestamps
    int64_t content_frames = 0;  // of the recording
    bool single_ending = false;  // see WindowSlices
    double last_speech = 0;      // end of the last word before the window, seconds
};

struct WordSeek {
    int64_t seek = 0;      // the next window's first frame, always after this one's
    bool discard = false;  // discard the window's segments and decode again from `seek`
    size_t kept = 0;       // number of segments that stay
};

// The next window begins after the last word. With `silence`: more than `silence` seconds of
// silence around a segment that looks hallucinated are skipped; the segment and all after it are
// dropped and decoded again.
WordSeek seek_by_words(std::span<const Segment> segments, const WordWindow& window,
                       std::optional<double> silence);

// The end of the last word, or without words of the last segment; nullopt without segments.
// (utils.py, get_end)
std::optional<double> end_of_words(std::span<const Segment> segments);

// Whether the segment's first words look hallucinated: improbable, very short or very long.
// (is_segment_anomaly)
bool looks_hallucinated(const Segment& segment);

}  // namespace hark::whisper
