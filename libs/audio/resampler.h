// From a recording's own rate and channels to 16 kHz.
#pragma once

#include <memory>
#include <vector>

#include "audio/decoder.h"

namespace hark {

// Samples of each channel that goes out: one after a downmix, all of them otherwise.
using Channels = std::vector<std::vector<float>>;

// The build picks its implementation: libswresample, or, without libav, code that takes 16 kHz
// alone and mixes channels by their mean.
class Resampler {
  public:
    // For blocks of `like`'s rate, channels and layout. The downmix to mono has the level of
    // ffmpeg's 16-bit path: the weights of the loudspeakers add up to 1.
    Resampler(const AudioBlock& like, bool split_channels);
    ~Resampler();

    bool takes(const AudioBlock& block) const;
    // Appends the block's samples to each of `out`, clipped to [-1, 32767/32768] as ffmpeg's 16-bit
    // path does. Throws Error at the first sample that is not finite; those before it are appended.
    void push(const AudioBlock& block, Channels& out);
    // Appends what the filter still holds.
    void finish(Channels& out);

    int channels() const;  // that go out

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Clips and checks the samples from `had` on of every channel. From the first that is not finite on
// they are removed from all channels, and Error is thrown.
void finish_samples(Channels& out, size_t had);

}  // namespace hark
