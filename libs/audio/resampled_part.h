// A part of a recording, resampled by a thread of its own to the bits that one resampler gives.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "audio/helpers.h"
#include "audio/resampler.h"

namespace hark {

// The filter is the same after each period: 441 samples in, 160 out for 44.1 kHz. A resampler that
// begins at a multiple of it gives the same samples, except for the first, which see its beginning.
class ResampledPart : public PartSink {
  public:
    ResampledPart(bool split_channels, int64_t position)
        : split_channels_(split_channels), position_(position) {}

    void push(const AudioBlock& block) override;
    void begin() override;

    // Appends the samples from `produced` on, as many as the recording's resampler has given; those
    // of the pushed block that reaches `most` of them are the last. Internal error if there are
    // none.
    void take(int64_t produced, int64_t most, Channels& out) const;
    // The resampler after the part.
    std::unique_ptr<Resampler> take_resampler() { return std::move(resampler_); }

  private:
    bool split_channels_;
    int64_t position_;
    int64_t first_ = 0;  // which of the recording's samples the first of out_ is
    std::unique_ptr<Resampler> resampler_;
    AudioBlock rest_;  // of a block whose first samples are dropped
    Channels out_;
    std::vector<size_t> ends_;  // of the part's blocks in out_
    bool has_begun_ = false;
};

}  // namespace hark
