#include "whisper/transcribe/word_seek.h"

#include "whisper/model/config.h"

#include <algorithm>
#include <cmath>

namespace hark::whisper {
namespace {

constexpr size_t kJudgedWords = 8;  // of a segment
constexpr double kHallucinationScore = 3;
constexpr double kNearEdge = 2.0;  // seconds to a window's edge that count as silence

bool has_words(const Segment& segment) { return segment.words && !segment.words->empty(); }

int64_t frame_of(double seconds) {
    return static_cast<int64_t>(std::nearbyint(seconds * kFramesPerSecond));
}

// 0 for an ordinary word.
double oddness(const Word& word) {
    const double duration = word.end - word.start;
    double score = 0;
    if (word.probability < 0.15) score += 1;
    if (duration < 0.133) score += (0.133 - duration) * 15;
    if (duration > 2) score += duration - 2;
    return score;
}

const Segment* first_with_words(std::span<const Segment> segments) {
    const auto found = std::find_if(segments.begin(), segments.end(), has_words);
    return found == segments.end() ? nullptr : &*found;
}

// The first segment that looks hallucinated and has on both sides silence, the window's edge or,
// after it, another such segment.
std::optional<size_t> find_hallucinated(std::span<const Segment> segments, const WordWindow& window,
                                        double silence) {
    const double begin = seconds_of(window.seek), end = seconds_of(window.seek + window.size);
    const double full_end = seconds_of(window.seek + kWindowFrames);
    double last_end = window.last_speech;
    for (size_t i = 0; i < segments.size(); ++i) {
        const Segment& segment = segments[i];
        if (!has_words(segment)) continue;
        if (looks_hallucinated(segment)) {
            const Segment* next = first_with_words(segments.subspan(i + 1));
            const double next_start = next ? next->words->front().start : end;
            const bool silence_before = segment.start - last_end > silence ||
                                        segment.start < silence ||
                                        segment.start - begin < kNearEdge;
            const bool silence_after = next_start - segment.end > silence ||
                                       (next && looks_hallucinated(*next)) ||
                                       full_end - segment.end < kNearEdge;
            if (silence_before && silence_after) return i;
        }
        last_end = segment.end;
    }
    return std::nullopt;
}

}  // namespace

std::optional<double> end_of_words(std::span<const Segment> segments) {
    for (size_t i = segments.size(); i-- > 0;)
        if (has_words(segments[i])) return segments[i].words->back().end;
    if (segments.empty()) return std::nullopt;
    return segments.back().end;
}

bool looks_hallucinated(const Segment& segment) {
    // One string that is searched for each word's text, as in the reference.
    static const std::string kPunctuation = "\"'“¿([{-\"'.。,，!！?？:：”)]}、";
    if (!has_words(segment)) return false;
    double score = 0;
    size_t count = 0;
    for (const Word& word : *segment.words) {
        if (kPunctuation.find(word.text) != std::string::npos) continue;
        score += oddness(word);
        if (++count == kJudgedWords) break;
    }
    return score >= kHallucinationScore || score + 0.01 >= static_cast<double>(count);
}

WordSeek seek_by_words(std::span<const Segment> segments, const WordWindow& window,
                       std::optional<double> silence) {
    const double begin = seconds_of(window.seek);
    // A window must advance, or the loop would not end.
    const auto to = [&](int64_t frame) {
        return frame > window.seek ? frame : window.seek + window.size;
    };
    WordSeek result = {window.next_seek, false, segments.size()};
    const double last_end = end_of_words(segments).value_or(0);
    if (!window.single_ending && last_end > begin) {
        const double rest = seconds_of(window.seek + kWindowFrames) - last_end;
        result.seek =
            !silence || rest > *silence ? to(frame_of(last_end)) : window.seek + window.size;
    }
    if (!silence) return result;
    const Segment* first = first_with_words(segments);
    const double gap = first ? first->start - begin : 0;
    if (first && looks_hallucinated(*first) && gap > *silence)
        return {to(window.seek + frame_of(gap)), true, 0};
    if (const std::optional<size_t> hallucinated = find_hallucinated(segments, window, *silence)) {
        const Segment& segment = segments[*hallucinated];
        result.kept = *hallucinated;
        result.seek = to(frame_of(std::max(begin + 1, segment.start)));
        if (seconds_of(window.content_frames) - segment.end < *silence)
            result.seek = window.content_frames;
    }
    return result;
}

}  // namespace hark::whisper
