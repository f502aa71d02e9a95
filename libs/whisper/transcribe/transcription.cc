#include "whisper/transcribe/transcription.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/error.h"
#include "formats/recordings.h"
#include "whisper/model/config.h"

namespace hark::whisper {
namespace {

// Cuts a word across two pieces of speech to the piece that has more of it.
void keep_in_one_piece(Word& word, double packed_start, double packed_end, const TimeMap& speech) {
    const double start_samples = packed_start * kSampleRate, end_samples = packed_end * kSampleRate;
    for (const TimeMap::Piece& piece : speech.pieces()) {
        const double cut = static_cast<double>(piece.packed + piece.length);
        if (start_samples >= cut || end_samples <= cut) continue;
        if (cut - start_samples >= end_samples - cut)
            word.end = speech.end_in_recording_s(cut / kSampleRate);
        else
            word.start = speech.start_in_recording_s(cut / kSampleRate);
    }
}

}  // namespace

Transcription::Transcription(RecordingInfo info, std::string error, MelRecording mel,
                             TranscriptionPlan plan, const Tokenizer& tokenizer)
    : info(std::move(info)),
      error(std::move(error)),
      mel_(std::move(mel)),
      content_frames_(mel_.content_frames()),
      plan_(std::move(plan)),
      tokenizer_(tokenizer) {
    if (!plan_.windows) {
        sequences_.push_back({WindowLoop(plan_.loop, tokenizer, content_frames_), {}});
        return;
    }
    for (const FrameRange& range : *plan_.windows) {
        groups_.push_back({{}, {}, 1});
        add_sequence(range, groups_.size() - 1, false);
    }
}

// Its windows have no prompt from other sequences.
void Transcription::add_sequence(FrameRange range, size_t group, bool redecodes) {
    LoopOptions own = plan_.loop;
    own.clips = {seconds_of(range.begin), seconds_of(range.end)};
    own.previous_text = false;
    sequences_.push_back({WindowLoop(own, tokenizer_, content_frames_), group, redecodes});
}

std::optional<Transcription::Work> Transcription::next() {
    for (size_t i = first_sequence_; i < sequences_.size(); ++i) {
        WindowSequence& sequence = sequences_[i];
        if (sequence.busy || sequence.done) continue;
        std::optional<WindowLoop::Window> window = sequence.loop.next();
        if (window) {
            sequence.busy = true;
            return Work{i, window->seek, window->size, std::move(window->prompt)};
        }
        end_sequence(sequence);
    }
    return std::nullopt;
}

void Transcription::end_sequence(WindowSequence& sequence) {
    sequence.done = true;
    if (sequence.group) {
        SegmentGroup& group = groups_[*sequence.group];
        --group.pending;
        if (sequence.joined && --group.joined[*sequence.joined].pending == 0)
            take_longer_text(group, group.joined[*sequence.joined]);
    }
    while (first_sequence_ < sequences_.size() && sequences_[first_sequence_].done)
        ++first_sequence_;
}

void Transcription::accept(const Work& work, const DecodingResult& result,
                           const std::string& language, const WindowLoop::AddWords& add_words) {
    require(sequences_[work.sequence].busy, "a result of a window that is not being decoded");
    sequences_[work.sequence].busy = false;
    WindowLoop& loop = sequences_[work.sequence].loop;
    std::vector<Segment> segments = loop.accept(result, add_words);
    for (Segment& segment : segments) segment.language = language;
    // A repeated decoding may not be worse than the thresholds allow.
    const bool redecodes = sequences_[work.sequence].redecodes;
    if (redecodes && rejection(result, plan_.loop.thresholds) != Rejection::none) segments.clear();

    if (!sequences_[work.sequence].group) groups_.push_back({});
    const size_t group = sequences_[work.sequence].group.value_or(groups_.size() - 1);
    const std::optional<WindowLoop::Window> next = loop.next();
    if (plan_.speech && !redecodes) {
        const int64_t end =
            next ? std::min(next->seek, work.seek + work.size) : work.seek + work.size;
        redecode_uncovered(group, work, {work.seek, end}, segments);
        redecode_joined(group, segments);
    }
    const std::optional<size_t> joined = sequences_[work.sequence].joined;
    std::vector<Segment>& to =
        joined ? groups_[group].joined[*joined].separate : groups_[group].segments;
    for (Segment& segment : segments)
        if (!segment.text.empty()) to.push_back(std::move(segment));
    if (!next) end_sequence(sequences_[work.sequence]);
    if (done()) mel_ = MelRecording();
}

void Transcription::redecode_uncovered(size_t group, const Work& work, FrameRange range,
                                       std::span<const Segment> segments) {
    for (const FrameRange& gap : uncovered(range, segments)) {
        // The same frames without a prompt would give the same text.
        const bool same = gap.begin == work.seek && gap.end == work.seek + work.size;
        if (same && work.prompt.empty()) continue;
        add_sequence(gap, group, true);
        ++groups_[group].pending;
    }
}

// Takes out segments that span a pause and decodes each of their regions. Given sentences without
// pauses between them, a model may write one of them with the times of all.
void Transcription::redecode_joined(size_t group, std::vector<Segment>& segments) {
    for (Segment& segment : segments) {
        if (segment.text.empty()) continue;
        const std::vector<FrameRange> regions = regions_under(segment, *plan_.speech);
        if (regions.empty()) continue;
        JoinedSegment joined{std::move(segment), {}, static_cast<int>(regions.size())};
        segment.text.clear();
        groups_[group].joined.push_back(std::move(joined));
        for (const FrameRange& region : regions) {
            add_sequence(region, group, true);
            sequences_.back().joined = groups_[group].joined.size() - 1;
            ++groups_[group].pending;
        }
    }
}

// Keeps the segments of the separate regions only if their text is longer.
void Transcription::take_longer_text(SegmentGroup& group, JoinedSegment& joined) {
    size_t found = 0;
    for (const Segment& segment : joined.separate) found += segment.text.size();
    if (found <= joined.segment.text.size()) joined.separate = {std::move(joined.segment)};
    std::move(joined.separate.begin(), joined.separate.end(), std::back_inserter(group.segments));
}

std::vector<Segment> Transcription::take_segments() {
    std::vector<Segment> taken;
    for (; first_group_ < groups_.size() && groups_[first_group_].pending == 0; ++first_group_) {
        std::vector<Segment>& segments = groups_[first_group_].segments;
        std::stable_sort(segments.begin(), segments.end(),
                         [](const Segment& a, const Segment& b) { return a.start < b.start; });
        for (Segment& segment : segments) {
            text_ += segment.text;
            if (plan_.speech) to_recording(segment);
            taken.push_back(std::move(segment));
        }
        segments.clear();
    }
    return taken;
}

void Transcription::to_recording(Segment& segment) const {
    const TimeMap& speech = *plan_.speech;
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

bool Transcription::done() const { return first_sequence_ == sequences_.size(); }

// A single sequence's tokens are decoded to text at once, as in the reference.
std::string Transcription::text() const {
    return sequences_.size() == 1 && !sequences_[0].redecodes ? sequences_[0].loop.text() : text_;
}

double Transcription::progress() const {
    double done = 0;
    for (const WindowSequence& sequence : sequences_)
        done += sequence.done ? 1 : sequence.loop.progress();
    return sequences_.empty() ? 1 : done / static_cast<double>(sequences_.size());
}

}  // namespace hark::whisper
