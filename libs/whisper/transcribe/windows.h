// The frames to decode: independent windows, and speech without segments. Pure functions. A frame
// is 10 ms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "speech/regions.h"
#include "whisper/transcribe/window_loop.h"

namespace hark::whisper {

struct FrameRange {
    int64_t begin = 0, end = 0;

    bool operator==(const FrameRange&) const = default;
};

// Cuts ranges into independent windows of at most 30 s. Each ends at the last of the sorted
// `pauses` within 30 s, or after 30 s if there is none.
std::vector<FrameRange> independent_windows(std::span<const FrameRange> ranges,
                                            std::span<const int64_t> pauses);

// The frames halfway between neighbouring regions of speech.
std::vector<int64_t> pauses_between(std::span<const Region> speech);

// The intersection of sorted regions and clips (start, end, start, ... in seconds; a last start
// without an end means the recording's end), sorted, without duplicates. Without clips: all
// regions.
std::vector<Region> clipped(std::span<const Region> speech, std::span<const double> clips);

// The parts of `range`, of at least a second, without a segment with text. The segments are in
// order.
std::vector<FrameRange> uncovered(FrameRange range, std::span<const Segment> segments);

// The pieces of speech that overlap a segment, cut to it, of at least half a second, in packed
// time. Empty if there are fewer than two.
std::vector<FrameRange> regions_under(const Segment& segment, const TimeMap& speech);

}  // namespace hark::whisper
