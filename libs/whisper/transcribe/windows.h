// Which frames of a recording are decoded: windows side by side, and speech that was left out.
// Pure functions. Frames are 10 ms each.
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

// Cuts ranges into windows of 30 s at most that can be decoded on their own: each ends at the last
// of the sorted `pauses` that it reaches, or after 30 s where it reaches none.
std::vector<FrameRange> independent_windows(std::span<const FrameRange> ranges,
                                            std::span<const int64_t> pauses);

// The frames halfway between neighbouring regions of speech.
std::vector<int64_t> pauses_between(std::span<const Region> speech);

// The parts of the sorted regions within the clips (start, end, start, ... in seconds; an odd last
// start goes to the recording's end), sorted; what several clips hold counts once. No clips: all of
// them.
std::vector<Region> clipped(std::span<const Region> speech, std::span<const double> clips);

// The parts of `range`, a second long at least, in which no segment with text lies. The segments
// are in order; times in seconds.
std::vector<FrameRange> uncovered(FrameRange range, std::span<const Segment> segments);

// The pieces of speech under a segment on the packed time line, cut to it, those of half a second
// at least. None where there are fewer than two.
std::vector<FrameRange> regions_under(const Segment& segment, const TimeMap& speech);

}  // namespace hark::whisper
