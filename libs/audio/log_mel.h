// Whisper's log-mel front end, streaming.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "audio/mel_frame.h"
#include "core/context.h"

namespace hark {

// Frames of a recording's own time: floor(samples / 160).
int64_t content_frames(int64_t samples);

// Frames that LogMel returns for that many samples: the content's and those after it whose window
// still reaches back into the recording, which are two, or three where more than 121 samples follow
// the last whole hop. (The window's first value is 0, so a sample there does not count.)
int64_t log_mel_frames(int64_t samples);

// The filters' weights, (n_mels, 201) of the bins of a transform of 400 samples. Throws Error
// unless n_mels is 80 or 128.
std::vector<float> mel_filters(int n_mels);

// Computes frames on either device. Several recordings share one object.
class MelFrames {
  public:
    // Computes on one CPU thread, or on the device and threads of `ctx`, which must outlive this.
    // Throws Error unless n_mels is 80 or 128.
    explicit MelFrames(int n_mels, Context* ctx = nullptr);

    int n_mels() const { return tables_->n_mels; }
    // frames (count, n_mels) = log10 of the mel power, of samples ((count - 1) * 160 + 400). A
    // frame's bits depend on its own 400 samples only, not on other frames or the device.
    void operator()(float* frames, const float* samples, int64_t count) const;
    // The same for samples and frames in GPU memory. Launches the work and does not wait.
    void launch(float* frames, const float* samples, int64_t count) const;

  private:
    std::unique_ptr<const mel_frame::Tables> tables_;
    Context* ctx_;
    std::unique_ptr<Arena> memory_;  // the GPU's copy of the tables
    const mel_frame::Tables* device_tables_ = nullptr;
};

// The implementation in libhark-cuda.so. All arguments are in GPU memory.
struct CudaLogMel {
    void (*log_mel)(Context& ctx, float* frames, const float* samples, int64_t count, int n_mels,
                    const mel_frame::Tables* tables);
};

// log10 of the mel power spectrum, clamped at 1e-10, not normalised, as in openai-whisper's
// log_mel_spectrogram(audio, n_mels, padding=480000): 16 kHz samples, STFT of 400 samples
// every 160, periodic Hann window, reflected at the start, zeros after the end, Slaney mel filters
// from 0 to 8000 Hz with Slaney's area norm. Computed in double. The frames do not depend on how
// the samples are cut into pushes, to the last bit.
class LogMel {
  public:
    explicit LogMel(std::shared_ptr<const MelFrames> compute) : compute_(std::move(compute)) {}
    // Computes on one CPU thread.
    explicit LogMel(int n_mels) : LogMel(std::make_shared<const MelFrames>(n_mels)) {}

    // Takes the recording's next samples and appends the frames that are now complete to `frames`,
    // n_mels values each, low frequencies first.
    void push(std::span<const float> samples, std::vector<float>& frames);
    // Ends the recording: appends the rest of its log_mel_frames(samples()).
    void finish(std::vector<float>& frames);

    int64_t samples() const { return samples_; }
    int n_mels() const { return compute_->n_mels(); }

  private:
    void begin();
    void compute(std::vector<float>& frames, int64_t count);

    std::shared_ptr<const MelFrames> compute_;
    std::vector<float> pending_;  // from the first sample of the next frame's window
    int64_t samples_ = 0;
    int64_t next_frame_ = 0;
    bool begun_ = false;  // the reflected start is in pending_
};

// Whisper's normalisation over a whole recording, in place: floor at the maximum less 8 (the zeros
// after the end included), then (x + 4) / 4. `frames` come from LogMel.
void normalize_log_mel(std::span<float> frames);

}  // namespace hark
