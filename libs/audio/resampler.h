// Resamples from a recording's own rate and channels to 16 kHz.
#pragma once

#include <memory>
#include <vector>

#include "audio/decoder.h"

namespace hark {

// Samples per output channel: one channel after a downmix.
using Channels = std::vector<std::vector<float>>;

// Uses libswresample. The build without libav takes 16 kHz only and mixes channels by their mean.
class Resampler {
  public:
    // Takes blocks of `like`'s rate, channels and layout. The downmix to mono has the level of
    // ffmpeg's 16-bit path: the loudspeakers' weights add up to 1.
    Resampler(const AudioBlock& like, bool split_channels);
    ~Resampler();

    bool takes(const AudioBlock& block) const;
    // Appends the block's samples to each of `out`, clipped to [-1, 32767/32768] as ffmpeg's 16-bit
    // path does. Throws Error at the first sample that is not finite; those before it are appended.
    void push(const AudioBlock& block, Channels& out);
    // Appends the samples that are still in the filter.
    void finish(Channels& out);

    int channels() const;  // of the output

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Clips and checks the samples from `had` on of every channel. From the first that is not finite on
// they are removed from all channels, and Error is thrown.
void finish_samples(Channels& out, size_t had);

}  // namespace hark
