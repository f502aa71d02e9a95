#include "whisper/transcribe/window_loop.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "whisper/model/config.h"
#include "whisper/output/strings.h"
#include "whisper/transcribe/alignment.h"
#include "whisper/transcribe/word_seek.h"

namespace hark::whisper {
Rejection rejection(const DecodingResult& result, const Thresholds& thresholds) {
    const bool unlikely = thresholds.logprob && result.avg_logprob < *thresholds.logprob;
    if (unlikely && thresholds.no_speech && result.no_speech_prob > *thresholds.no_speech)
        return Rejection::none;  // silence
    if (thresholds.compression_ratio && result.compression_ratio > *thresholds.compression_ratio)
        return Rejection::compression_ratio;
    if (thresholds.max_repeats > 0 && result.repeats > thresholds.max_repeats)
        return Rejection::repeats;
    return unlikely ? Rejection::logprob : Rejection::none;
}

bool is_silence(const DecodingResult& result, const Thresholds& thresholds) {
    const bool likely = thresholds.logprob && result.avg_logprob > *thresholds.logprob;
    return thresholds.no_speech && result.no_speech_prob > *thresholds.no_speech && !likely;
}

WindowSlices slice_window(std::span<const int32_t> tokens, int32_t timestamp_begin, int64_t size) {
    const auto is_timestamp = [&](size_t i) { return tokens[i] >= timestamp_begin; };
    const size_t n = tokens.size();
    const bool single_ending = n >= 2 && is_timestamp(n - 1) && !is_timestamp(n - 2);
    WindowSlices result;
    result.advance = size;
    result.single_ending = single_ending;

    std::vector<size_t> cuts;
    for (size_t i = 1; i < n; ++i)
        if (is_timestamp(i - 1) && is_timestamp(i)) cuts.push_back(i);
    if (cuts.empty()) {
        Slice whole{0, n, 0, -1};
        for (size_t i = n; i-- > 0;) {
            if (!is_timestamp(i)) continue;
            if (tokens[i] != timestamp_begin) whole.end_step = tokens[i] - timestamp_begin;
            break;
        }
        result.slices.push_back(whole);
        return result;
    }
    if (single_ending) cuts.push_back(n);
    size_t begin = 0;
    for (size_t end : cuts) {
        // Without the timestamp rules the text may begin without a timestamp: at the window's
        // start.
        const int64_t start = std::max(tokens[begin] - timestamp_begin, 0);
        result.slices.push_back({begin, end, start, tokens[end - 1] - timestamp_begin});
        begin = end;
    }
    // A single timestamp at the end: no speech follows it. Otherwise the tail is decoded again.
    if (!single_ending) result.advance = result.slices.back().end_step * kFramesPerStep;
    // Without the timestamp rules a pair may be at 0.00: advance, or the loop would not end.
    if (result.advance <= 0) result.advance = size;
    return result;
}

std::vector<int32_t> prompt_after(const LoopOptions& options, std::span<const int32_t> text) {
    std::vector<int32_t> prompt = options.hotwords;
    if (options.carry_initial_prompt)
        prompt.insert(prompt.end(), options.initial_prompt.begin(), options.initial_prompt.end());
    if (!prompt.empty()) {
        const size_t max = options.max_prompt;
        const size_t room = max > prompt.size() ? max - prompt.size() : 0;
        text = text.last(std::min(room, text.size()));
    }
    prompt.insert(prompt.end(), text.begin(), text.end());
    return prompt;
}

std::vector<Segment> segments_of(const DecodingResult& result, std::span<const Slice> slices,
                                 int64_t seek, int64_t size, const Tokenizer& tokenizer) {
    const SpecialTokens& special = tokenizer.special();
    const double offset = seconds_of(seek);
    std::vector<Segment> segments;
    for (const Slice& slice : slices) {
        Segment segment;
        segment.seek = seek;
        segment.start = offset + static_cast<double>(slice.start_step) * kTimestampStep;
        segment.end =
            offset + (slice.end_step < 0 ? seconds_of(size)
                                         : static_cast<double>(slice.end_step) * kTimestampStep);
        segment.tokens.assign(result.tokens.begin() + static_cast<ptrdiff_t>(slice.begin),
                              result.tokens.begin() + static_cast<ptrdiff_t>(slice.end));
        std::vector<int32_t> text;
        for (int32_t token : segment.tokens)
            if (token < special.eot) text.push_back(token);
        segment.text = tokenizer.decode(text);
        segment.temperature = result.temperature;
        segment.avg_logprob = result.avg_logprob;
        segment.compression_ratio = result.compression_ratio;
        segment.no_speech_prob = result.no_speech_prob;
        segments.push_back(std::move(segment));
    }
    return segments;
}

WindowLoop::WindowLoop(const LoopOptions& options, const Tokenizer& tokenizer,
                       int64_t content_frames)
    : options_(options),
      tokenizer_(tokenizer),
      content_frames_(content_frames),
      all_tokens_(options.initial_prompt) {
    std::vector<int64_t> points;
    for (double seconds : options.clips)
        points.push_back(std::min(static_cast<int64_t>(std::nearbyint(seconds * kFramesPerSecond)),
                                  content_frames));
    if (points.empty()) points.push_back(0);
    if (points.size() % 2 == 1) points.push_back(content_frames);
    for (size_t i = 0; i < points.size(); i += 2) clips_.push_back({points[i], points[i + 1]});
    seek_ = clips_[0].first;
}

std::optional<WindowLoop::Window> WindowLoop::next() {
    while (clip_ < clips_.size() && seek_ >= clips_[clip_].second) {
        ++clip_;
        if (clip_ < clips_.size()) seek_ = clips_[clip_].first;
    }
    if (clip_ == clips_.size()) return std::nullopt;
    Window window;
    window.seek = seek_;
    window.size = std::min(kWindowFrames, clips_[clip_].second - seek_);
    window.prompt = prompt();
    return window;
}

std::vector<int32_t> WindowLoop::prompt() const {
    const size_t begin = options_.carry_initial_prompt
                             ? std::max(prompt_begin_, options_.initial_prompt.size())
                             : prompt_begin_;
    return prompt_after(options_, std::span(all_tokens_).subspan(begin));
}

double WindowLoop::progress() const {
    int64_t done = 0, all = 0;
    for (size_t i = 0; i < clips_.size(); ++i) {
        const int64_t begin = clips_[i].first, end = std::max(begin, clips_[i].second);
        all += end - begin;
        if (i <= clip_) done += (i < clip_ ? end : std::clamp(seek_, begin, end)) - begin;
    }
    return all > 0 ? static_cast<double>(done) / static_cast<double>(all) : 1;
}

// Whether the window's text repeats itself or the segments before it more often than max_repeats.
bool WindowLoop::repeats_itself(const DecodingResult& result, std::span<const Segment> segments) {
    const int64_t most = options_.thresholds.max_repeats;
    if (most == 0) return false;
    bool looped = result.repeats > most;
    for (const Segment& segment : segments) {
        if (segment.text.empty()) continue;
        same_segments_ = segment.text == last_text_ ? same_segments_ + 1 : 1;
        last_text_ = segment.text;
        looped = looped || same_segments_ > most;
    }
    return looped;
}

std::vector<Segment> WindowLoop::accept(const DecodingResult& result, const AddWords& add_words) {
    const std::optional<Window> window = next();
    require(window.has_value(), "a result without a window");
    if (is_silence(result, options_.thresholds)) {
        seek_ += window->size;
        return {};
    }
    const WindowSlices cut =
        slice_window(result.tokens, tokenizer_.special().timestamp_begin, window->size);
    std::vector<Segment> segments =
        segments_of(result, cut.slices, window->seek, window->size, tokenizer_);
    seek_ += cut.advance;
    if (add_words) {
        add_words(*window, segments, last_speech_);
        const WordWindow place = {window->seek,    window->size,      seek_,
                                  content_frames_, cut.single_ending, last_speech_};
        const WordSeek next = seek_by_words(segments, place, options_.hallucination_silence);
        seek_ = next.seek;
        if (next.discard) return {};
        segments.resize(next.kept);
        last_speech_ = end_of_words(segments).value_or(last_speech_);
    }
    for (Segment& segment : segments) {
        if (segment.start == segment.end || strip(segment.text).empty()) {
            segment.text.clear();
            segment.tokens.clear();
            if (segment.words) segment.words->clear();
        }
        all_tokens_.insert(all_tokens_.end(), segment.tokens.begin(), segment.tokens.end());
    }
    if (!options_.previous_text || result.temperature > kPromptResetTemperature ||
        repeats_itself(result, segments))
        prompt_begin_ = all_tokens_.size();
    return segments;
}

std::string WindowLoop::text() const {
    return tokenizer_.decode(std::span(all_tokens_).subspan(options_.initial_prompt.size()));
}

}  // namespace hark::whisper
