#include "whisper/transcribe/windows.h"

#include <algorithm>
#include <cmath>

#include "formats/recordings.h"
#include "whisper/model/config.h"

namespace hark::whisper {
namespace {

constexpr int64_t kShortestGap = 100;  // frames
constexpr int64_t kShortestPiece = 50;

}  // namespace

std::vector<FrameRange> independent_windows(std::span<const FrameRange> ranges,
                                            std::span<const int64_t> pauses) {
    std::vector<FrameRange> windows;
    for (const FrameRange& range : ranges) {
        for (int64_t begin = range.begin; begin < range.end;) {
            int64_t end = std::min(begin + kWindowFrames, range.end);
            const auto next_pause = std::upper_bound(pauses.begin(), pauses.end(), end);
            if (end < range.end && next_pause != pauses.begin() && *std::prev(next_pause) > begin)
                end = *std::prev(next_pause);
            windows.push_back({begin, end});
            begin = end;
        }
    }
    return windows;
}

std::vector<int64_t> pauses_between(std::span<const Region> speech) {
    std::vector<int64_t> pauses;
    for (size_t i = 1; i < speech.size(); ++i)
        pauses.push_back((speech[i - 1].end + speech[i].begin) / 2 / TimeMap::kFrame);
    return pauses;
}

std::vector<Region> clipped(std::span<const Region> speech, std::span<const double> clips) {
    if (clips.empty()) return {speech.begin(), speech.end()};
    const auto sample = [](double seconds) { return std::llround(seconds * kSampleRate); };
    std::vector<Region> sorted;
    for (size_t i = 0; i < clips.size(); i += 2)
        sorted.push_back(
            {sample(clips[i]), i + 1 < clips.size() ? sample(clips[i + 1]) : INT64_MAX});
    std::sort(sorted.begin(), sorted.end(),
              [](const Region& a, const Region& b) { return a.begin < b.begin; });
    std::vector<Region> parts;
    int64_t taken = 0;  // samples before it are in `parts` if they are in a clip
    for (const Region& clip : sorted) {
        for (const Region& region : speech) {
            const Region part = {std::max({region.begin, clip.begin, taken}),
                                 std::min(region.end, clip.end)};
            if (part.begin < part.end) parts.push_back(part);
        }
        taken = std::max(taken, clip.end);
    }
    return parts;
}

std::vector<FrameRange> uncovered(FrameRange range, std::span<const Segment> segments) {
    std::vector<FrameRange> gaps;
    int64_t begin = range.begin;
    const auto gap_until = [&](int64_t end) {
        end = std::min(end, range.end);
        if (end - begin >= kShortestGap) gaps.push_back({begin, end});
    };
    for (const Segment& segment : segments) {
        if (segment.text.empty()) continue;
        gap_until(std::llround(segment.start * kFramesPerSecond));
        begin = std::max<int64_t>(begin, std::llround(segment.end * kFramesPerSecond));
    }
    gap_until(range.end);
    return gaps;
}

std::vector<FrameRange> regions_under(const Segment& segment, const TimeMap& speech) {
    const int64_t begin = std::llround(segment.start * kFramesPerSecond);
    const int64_t end = std::llround(segment.end * kFramesPerSecond);
    std::vector<FrameRange> regions;
    for (const TimeMap::Piece& piece : speech.pieces()) {
        const int64_t first = piece.packed / TimeMap::kFrame;
        const FrameRange part = {std::max(first, begin),
                                 std::min(first + piece.length / TimeMap::kFrame, end)};
        if (part.end - part.begin >= kShortestPiece) regions.push_back(part);
    }
    if (regions.size() < 2) regions.clear();
    return regions;
}

}  // namespace hark::whisper
