#include "whisper/transcription.h"

#include "core/error.h"

namespace hark::whisper {

Transcription::Transcription(RecordingInfo info, std::string error, MelRecording mel,
                             const LoopOptions& options, const Tokenizer& tokenizer,
                             const std::vector<std::pair<int64_t, int64_t>>& ranges)
    : info(std::move(info)),
      error(std::move(error)),
      mel_(std::move(mel)),
      content_frames_(mel_.content_frames()) {
    if (ranges.empty()) lanes_.push_back({WindowLoop(options, tokenizer, content_frames_), {}});
    for (const auto& [begin, end] : ranges) {
        LoopOptions own = options;
        own.clips = {static_cast<double>(begin) / 100, static_cast<double>(end) / 100};
        lanes_.push_back({WindowLoop(own, tokenizer, content_frames_), {}});
    }
}

std::optional<Transcription::Work> Transcription::next() {
    for (size_t i = first_; i < lanes_.size(); ++i) {
        Lane& lane = lanes_[i];
        if (lane.busy || lane.done) continue;
        std::optional<WindowLoop::Window> window = lane.loop.next();
        lane.done = !window;
        if (!window) continue;
        lane.busy = true;
        return Work{i, window->seek, window->size, std::move(window->prompt)};
    }
    return std::nullopt;
}

void Transcription::accept(const Work& work, const DecodingResult& result,
                           const std::string& language, const WindowLoop::AddWords& add_words) {
    Lane& lane = lanes_[work.lane];
    require(lane.busy, "a result of a window that is not being decoded");
    lane.busy = false;
    for (Segment& segment : lane.loop.accept(result, add_words)) {
        segment.language = language;
        if (!segment.text.empty()) lane.segments.push_back(std::move(segment));
    }
    lane.done = !lane.loop.next();
    if (done()) mel_ = MelRecording();
}

std::vector<Segment> Transcription::take_segments() {
    std::vector<Segment> segments;
    for (; first_ < lanes_.size(); ++first_) {
        Lane& lane = lanes_[first_];
        segments.insert(segments.end(), std::make_move_iterator(lane.segments.begin()),
                        std::make_move_iterator(lane.segments.end()));
        lane.segments.clear();
        if (!lane.done) break;
    }
    return segments;
}

bool Transcription::done() const {
    for (const Lane& lane : lanes_)
        if (!lane.done) return false;
    return true;
}

std::string Transcription::text() const {
    std::string text;
    for (const Lane& lane : lanes_) text += lane.loop.text();
    return text;
}

double Transcription::progress() const {
    double done = 0;
    for (const Lane& lane : lanes_) done += lane.done ? 1 : lane.loop.progress();
    return done / static_cast<double>(lanes_.size());
}

}  // namespace hark::whisper
