#include "whisper/transcribe/mel_recording.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "speech/detector.h"
#include "whisper/model/config.h"

namespace hark::whisper {
namespace {

constexpr float kSilence = -10.0f;  // log10 of the smallest power, 1e-10
constexpr float kRange = 8.0f;      // below the maximum, in powers of ten
constexpr int64_t kTile = 16;       // frames that are transposed at once: a cache line of each mel
constexpr float kQuiet = 1.5f;      // below the loudest frame, in powers of ten

float normalise(float x, float max) { return (std::max(x, max - kRange) + 4.0f) / 4.0f; }

// The greatest of the values and kSilence; in lanes, which a compiler turns into vectors.
float greatest(std::span<const float> values) {
    constexpr size_t kLanes = 16;
    float lanes[kLanes];
    std::fill_n(lanes, kLanes, kSilence);
    size_t i = 0;
    for (; i + kLanes <= values.size(); i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane)
            lanes[lane] = lanes[lane] < values[i + lane] ? values[i + lane] : lanes[lane];
    for (; i < values.size(); ++i) lanes[0] = std::max(lanes[0], values[i]);
    return *std::max_element(lanes, lanes + kLanes);
}

int64_t parse_content_frames(const Chunk& chunk) {
    const Metadata& metadata = chunk.document.header.metadata;
    const auto found = metadata.find("content_frames");
    require(found != metadata.end(), chunk.document.where,
            ": expected 'content_frames' on the recording's last document, found none");
    const std::string& text = found->second;
    require(!text.empty() && text.size() <= 15 &&
                text.find_first_not_of("0123456789") == std::string::npos,
            chunk.document.where, ": 'content_frames': expected a whole number, found '", text,
            "'");
    return std::stoll(text);
}

}  // namespace

void MelRecording::add(const Chunk& chunk, int64_t n_mels) {
    const Tensor mel = chunk.values();  // (n_mels, frames)
    require(mel.dim(0) == n_mels, chunk.document.where, ": the model expects ", n_mels,
            " mels, found ", mel.dim(0), "; use mel --mels ", n_mels);
    const Metadata& metadata = chunk.document.header.metadata;
    const auto normalised = metadata.find("normalized");
    const bool is_normalised = normalised != metadata.end() && normalised->second == "true";
    require(chunk.start == 0 || is_normalised == normalised_, chunk.document.where,
            ": 'normalized' changes within the recording");
    if (chunk.start == 0) {
        normalised_ = is_normalised;
        max_ = normalised_ ? (kSilence + 4.0f) / 4.0f : kSilence;
    }
    n_mels_ = n_mels;
    const int64_t frames = mel.dim(1);
    const float* from = mel.as<float>();
    const size_t begin = frames_.size();
    frames_.resize(begin + static_cast<size_t>(frames * n_mels));
    float* to = frames_.data() + begin;
    for (int64_t first = 0; first < frames; first += kTile) {
        const int64_t end = std::min(first + kTile, frames);
        for (int64_t m = 0; m < n_mels; ++m)
            for (int64_t t = first; t < end; ++t) to[t * n_mels + m] = from[m * frames + t];
    }
    max_ = std::max(max_, greatest({to, static_cast<size_t>(frames * n_mels)}));

    if (const std::optional<std::vector<Region>> regions = speech_of(chunk.document)) {
        if (!speech_) speech_.emplace();
        require(
            speech_->empty() || regions->empty() || speech_->back().end <= regions->front().begin,
            chunk.document.where, ": its regions of speech begin before the last ones have ended");
        speech_->insert(speech_->end(), regions->begin(), regions->end());
    }

    const int64_t total = first_ + static_cast<int64_t>(frames_.size()) / n_mels_;
    content_frames_ = chunk.last ? parse_content_frames(chunk) : total;
    require(content_frames_ <= total, chunk.document.where, ": 'content_frames' is ",
            content_frames_, ", the recording has ", total, " frames");
}

void MelRecording::forget_before(int64_t frame) {
    require(frame <= content_frames_, "frame ", frame, " of ", content_frames_);
    if (frame <= first_) return;
    frames_.erase(frames_.begin(), frames_.begin() + (frame - first_) * n_mels_);
    first_ = frame;
    speech_.reset();
}

std::vector<Region> MelRecording::detect_speech(const RegionOptions& options, int threads) const {
    require(!normalised_,
            "the mel stream is normalised, which hides the levels that tell speech from silence: "
            "leave out mel's --normalize");
    const std::span<const float> content(frames_.data(),
                                         static_cast<size_t>(content_frames_ * n_mels_));
    return speech_in_log_mel(content, static_cast<int>(n_mels_), content_frames_ * TimeMap::kFrame,
                             options, threads);
}

void MelRecording::find_speech(int threads) {
    if (!speech_ && !normalised_) detected_ = detect_speech({}, threads);
}

std::vector<Region> MelRecording::detected_speech() const {
    return detected_ ? *detected_ : detect_speech({});
}

std::pair<int64_t, int64_t> MelRecording::last_quiet(int64_t begin, int64_t end,
                                                     int64_t least) const {
    std::vector<float> levels;
    for (int64_t frame = begin; frame < end; ++frame) {
        const float* bands = frames_.data() + (frame - first_) * n_mels_;
        levels.push_back(std::accumulate(bands, bands + n_mels_, 0.0f) /
                         static_cast<float>(n_mels_));
    }
    if (levels.empty()) return {};
    const float most = *std::max_element(levels.begin(), levels.end()) - kQuiet;
    for (int64_t last = std::ssize(levels), first = last; last > 0; last = --first) {
        while (first > 0 && levels[static_cast<size_t>(first - 1)] < most) --first;
        if (last - first >= least) return {begin + first, begin + last};
    }
    return {};
}

MelRecording MelRecording::only(std::span<const TimeMap::Piece> pieces) const {
    MelRecording kept;
    kept.n_mels_ = n_mels_;
    kept.normalised_ = normalised_;
    for (const TimeMap::Piece& piece : pieces) {
        const int64_t begin = piece.recording / TimeMap::kFrame * n_mels_;
        const int64_t end = begin + piece.length / TimeMap::kFrame * n_mels_;
        kept.frames_.insert(kept.frames_.end(), frames_.begin() + begin, frames_.begin() + end);
    }
    kept.content_frames_ = static_cast<int64_t>(kept.frames_.size()) / n_mels_;
    kept.max_ = normalised_ ? max_ : kSilence;
    for (float x : kept.frames_) kept.max_ = std::max(kept.max_, x);
    return kept;
}

void MelRecording::copy_normalised(int64_t seek, int64_t size, float* to) const {
    const float* from = frames_.data() + (seek - first_) * n_mels_;
    for (int64_t i = 0; i < size * n_mels_; ++i)
        to[i] = normalised_ ? from[i] : normalise(from[i], max_);
}

void MelRecording::window(int64_t seek, int64_t size, std::span<float> to) const {
    require(seek >= first_ && size >= 0 && seek + size <= content_frames_ && size <= kWindowFrames,
            "window of ", size, " frames at ", seek, " of ", first_, " to ", content_frames_);
    copy_normalised(seek, size, to.data());
    std::fill(to.begin() + size * n_mels_, to.end(), 0.0f);
}

void MelRecording::detection_window(int64_t seek, std::span<float> to) const {
    const int64_t total = first_ + static_cast<int64_t>(frames_.size()) / n_mels_;
    require(seek >= first_ && seek <= total, "window at ", seek, " of ", first_, " to ", total);
    const int64_t size = std::min(total - seek, kWindowFrames);
    copy_normalised(seek, size, to.data());
    // A normalised maximum m is the power 10^(4 m - 4), so the floor is m - 2.
    const float silence = normalised_ ? std::max((kSilence + 4.0f) / 4.0f, max_ - kRange / 4.0f)
                                      : normalise(kSilence, max_);
    std::fill(to.begin() + size * n_mels_, to.end(), silence);
}

}  // namespace hark::whisper
