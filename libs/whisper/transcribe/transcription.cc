#include "whisper/transcribe/transcription.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/error.h"
#include "whisper/model/config.h"

namespace hark::whisper {
namespace {

// A word whose ends lie in two pieces of speech stays in the one that has more of it.
void keep_in_one_piece(Word& word, double packed_start, double packed_end, const TimeMap& speech) {
    const double start_samples = packed_start * 16000, end_samples = packed_end * 16000;
    for (const TimeMap::Piece& piece : speech.pieces()) {
        const double cut = static_cast<double>(piece.packed + piece.length);
        if (start_samples >= cut || end_samples <= cut) continue;
        if (cut - start_samples >= end_samples - cut)
            word.end = speech.end_in_recording_s(cut / 16000);
        else
            word.start = speech.start_in_recording_s(cut / 16000);
    }
}

}  // namespace

Transcription::Transcription(RecordingInfo info, std::string error, MelRecording mel, Route route,
                             const Tokenizer& tokenizer)
    : info(std::move(info)),
      error(std::move(error)),
      mel_(std::move(mel)),
      content_frames_(mel_.content_frames()),
      route_(std::move(route)),
      tokenizer_(tokenizer) {
    if (!route_.windows) {
        lanes_.push_back({WindowLoop(route_.loop, tokenizer, content_frames_), {}});
        return;
    }
    for (const FrameRange& range : *route_.windows) {
        parts_.push_back({{}, {}, 1});
        add_lane(range, parts_.size() - 1, false);
    }
}

// Such a lane knows nothing of the text before it.
void Transcription::add_lane(FrameRange range, size_t part, bool again) {
    LoopOptions own = route_.loop;
    own.clips = {seconds_of(range.begin), seconds_of(range.end)};
    own.previous_text = false;
    lanes_.push_back({WindowLoop(own, tokenizer_, content_frames_), part, again});
}

std::optional<Transcription::Work> Transcription::next() {
    for (size_t i = first_lane_; i < lanes_.size(); ++i) {
        Lane& lane = lanes_[i];
        if (lane.busy || lane.done) continue;
        std::optional<WindowLoop::Window> window = lane.loop.next();
        if (window) {
            lane.busy = true;
            return Work{i, window->seek, window->size, std::move(window->prompt)};
        }
        end_lane(lane);
    }
    return std::nullopt;
}

void Transcription::end_lane(Lane& lane) {
    lane.done = true;
    if (lane.part) {
        Part& part = parts_[*lane.part];
        --part.waiting;
        if (lane.doubt && --part.doubts[*lane.doubt].waiting == 0)
            settle(part, part.doubts[*lane.doubt]);
    }
    while (first_lane_ < lanes_.size() && lanes_[first_lane_].done) ++first_lane_;
}

void Transcription::accept(const Work& work, const DecodingResult& result,
                           const std::string& language, const WindowLoop::AddWords& add_words) {
    require(lanes_[work.lane].busy, "a result of a window that is not being decoded");
    lanes_[work.lane].busy = false;
    WindowLoop& loop = lanes_[work.lane].loop;
    std::vector<Segment> segments = loop.accept(result, add_words);
    for (Segment& segment : segments) segment.language = language;
    // What is decoded again must come to something better than what was refused before.
    const bool again = lanes_[work.lane].again;
    if (again && rejection(result, route_.loop.thresholds) != Rejection::none) segments.clear();

    if (!lanes_[work.lane].part) parts_.push_back({});
    const size_t part = lanes_[work.lane].part.value_or(parts_.size() - 1);
    const std::optional<WindowLoop::Window> next = loop.next();
    if (route_.speech && !again) {
        const int64_t end =
            next ? std::min(next->seek, work.seek + work.size) : work.seek + work.size;
        decode_again(part, work, {work.seek, end}, segments);
        doubt_joined(part, segments);
    }
    const std::optional<size_t> doubt = lanes_[work.lane].doubt;
    std::vector<Segment>& to = doubt ? parts_[part].doubts[*doubt].instead : parts_[part].segments;
    for (Segment& segment : segments)
        if (!segment.text.empty()) to.push_back(std::move(segment));
    if (!next) end_lane(lanes_[work.lane]);
    if (done()) mel_ = MelRecording();
}

void Transcription::decode_again(size_t part, const Work& work, FrameRange range,
                                 std::span<const Segment> segments) {
    for (const FrameRange& gap : uncovered(range, segments)) {
        // The same frames after the same prompt would come to the same.
        const bool same = gap.begin == work.seek && gap.end == work.seek + work.size;
        if (same && work.prompt.empty()) continue;
        add_lane(gap, part, true);
        ++parts_[part].waiting;
    }
}

// Takes out the segments that go on over a pause, and has each of their regions decoded. A model
// that hears sentences laid end to end may write one of them and let it last for all.
void Transcription::doubt_joined(size_t part, std::vector<Segment>& segments) {
    for (Segment& segment : segments) {
        if (segment.text.empty()) continue;
        const std::vector<FrameRange> regions = regions_under(segment, *route_.speech);
        if (regions.empty()) continue;
        Doubt doubt{std::move(segment), {}, static_cast<int>(regions.size())};
        segment.text.clear();
        parts_[part].doubts.push_back(std::move(doubt));
        for (const FrameRange& region : regions) {
            add_lane(region, part, true);
            lanes_.back().doubt = parts_[part].doubts.size() - 1;
            ++parts_[part].waiting;
        }
    }
}

// The regions on their own are taken where they say more.
void Transcription::settle(Part& part, Doubt& doubt) {
    size_t found = 0;
    for (const Segment& segment : doubt.instead) found += segment.text.size();
    if (found <= doubt.segment.text.size()) doubt.instead = {std::move(doubt.segment)};
    std::move(doubt.instead.begin(), doubt.instead.end(), std::back_inserter(part.segments));
}

std::vector<Segment> Transcription::take_segments() {
    std::vector<Segment> taken;
    for (; first_part_ < parts_.size() && parts_[first_part_].waiting == 0; ++first_part_) {
        std::vector<Segment>& segments = parts_[first_part_].segments;
        std::stable_sort(segments.begin(), segments.end(),
                         [](const Segment& a, const Segment& b) { return a.start < b.start; });
        for (Segment& segment : segments) {
            text_ += segment.text;
            if (route_.speech) to_recording(segment);
            taken.push_back(std::move(segment));
        }
        segments.clear();
    }
    return taken;
}

void Transcription::to_recording(Segment& segment) const {
    const TimeMap& speech = *route_.speech;
    segment.seek = speech.start_in_recording(segment.seek * TimeMap::kFrame) / TimeMap::kFrame;
    segment.start = speech.start_in_recording_s(segment.start);
    segment.end = std::max(segment.start, speech.end_in_recording_s(segment.end));
    if (!segment.words) return;
    for (Word& word : *segment.words) {
        const double start = word.start, end = word.end;
        word.start = speech.start_in_recording_s(start);
        word.end = speech.end_in_recording_s(end);
        keep_in_one_piece(word, start, end, speech);
        word.end = std::max(word.start, word.end);
    }
}

bool Transcription::done() const { return first_lane_ == lanes_.size(); }

// One loop's text is decoded in one piece, as the reference does.
std::string Transcription::text() const {
    return lanes_.size() == 1 && !lanes_[0].again ? lanes_[0].loop.text() : text_;
}

double Transcription::progress() const {
    double done = 0;
    for (const Lane& lane : lanes_) done += lane.done ? 1 : lane.loop.progress();
    return lanes_.empty() ? 1 : done / static_cast<double>(lanes_.size());
}

}  // namespace hark::whisper
