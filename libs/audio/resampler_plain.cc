// The build without libav: 16 kHz only, channels mixed by their mean.
#include "audio/resampler.h"
#include "core/error.h"
#include "formats/recordings.h"

namespace hark {

struct Resampler::Impl {
    int in_channels, out_channels;
};

Resampler::Resampler(const AudioBlock& like, bool split_channels)
    : impl_(std::make_unique<Impl>()) {
    require(like.rate == kSampleRate, "this build cannot resample (got ", like.rate,
            " Hz, expected ", kSampleRate, ")");
    impl_->in_channels = like.channels;
    impl_->out_channels = split_channels ? like.channels : 1;
}

Resampler::~Resampler() = default;

int Resampler::channels() const { return impl_->out_channels; }

bool Resampler::takes(const AudioBlock& block) const {
    return block.rate == kSampleRate && block.channels == impl_->in_channels;
}

void Resampler::push(const AudioBlock& block, Channels& out) {
    const size_t in = static_cast<size_t>(impl_->in_channels);
    out.resize(static_cast<size_t>(impl_->out_channels));
    const size_t had = out[0].size();
    for (size_t at = 0; at + in <= block.samples.size(); at += in) {
        float sum = 0;
        for (size_t c = 0; c < in; ++c) {
            const float sample = block.samples[at + c];
            if (out.size() == in) out[c].push_back(sample);
            sum += sample / static_cast<float>(in);
        }
        if (out.size() != in) out[0].push_back(sum);
    }
    finish_samples(out, had);
}

void Resampler::finish(Channels& out) { out.resize(static_cast<size_t>(impl_->out_channels)); }

}  // namespace hark
