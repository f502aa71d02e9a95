// The log-mel spectrogram of one recording, read from a stream and normalised by its maximum.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/recordings.h"
#include "speech/regions.h"

namespace hark::whisper {

class MelRecording {
  public:
    // Adds a mel chunk (n_mels, frames). Throws Error naming the document if its number of mels is
    // not `n_mels`, or the last chunk's content_frames exceeds the frames.
    void add(const Chunk& chunk, int64_t n_mels);

    // floor(samples / 160); before the last chunk, the frames so far.
    int64_t content_frames() const { return content_frames_; }
    // Frees the frames before this one, and the regions of speech. Later calls may use only the
    // remaining frames.
    void forget_before(int64_t frame);
    size_t bytes() const { return frames_.size() * sizeof(float); }
    // The regions of speech in the stream's metadata; nullopt if it has none.
    const std::optional<std::vector<Region>>& speech() const { return speech_; }
    // The regions that the built-in detector finds. Throws Error for a normalised recording, which
    // has lost its levels.
    std::vector<Region> detect_speech(const RegionOptions& options, int threads = 1) const;
    // Finds them now, for a later call of detected_speech(). A recording that has regions, or is
    // normalised, stays as it is.
    void find_speech(int threads);
    // What find_speech() has found, else detect_speech({}).
    std::vector<Region> detected_speech() const;
    // The last run of at least `least` frames in [begin, end) whose mean level over the bands is 15
    // dB below the loudest frame's. {0, 0} if there is none.
    std::pair<int64_t, int64_t> last_quiet(int64_t begin, int64_t end, int64_t least) const;
    // A recording of the pieces' frames, concatenated.
    MelRecording only(std::span<const TimeMap::Piece> pieces) const;

    // The frames [seek, seek + size), normalised, then zeros up to 3000: (3000, n_mels),
    // time-major. Source: openai/whisper audio.py, log_mel_spectrogram and pad_or_trim.
    void window(int64_t seek, int64_t size, std::span<float> to) const;
    // The frames [seek, seek + 3000) as in the reference's language detection: silence, not zeros,
    // after the recording's end.
    void detection_window(int64_t seek, std::span<float> to) const;

  private:
    void copy_normalised(int64_t seek, int64_t size, float* to) const;

    std::vector<float> frames_;  // (frames, n_mels): log10, or normalised if normalised_
    int64_t first_ = 0;          // the recording's frame at frames_[0]
    int64_t n_mels_ = 0;
    int64_t content_frames_ = 0;
    float max_ = -10.0f;  // of log10 values; silence is log10(1e-10)
    bool normalised_ = false;
    std::optional<std::vector<Region>> speech_, detected_;
};

}  // namespace hark::whisper
