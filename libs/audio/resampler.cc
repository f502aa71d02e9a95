// libswresample with the settings of the ffmpeg command.
#include "audio/resampler.h"

#include <algorithm>
#include <cmath>

extern "C" {
#include <libavutil/channel_layout.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>
}

#include "audio/libav/libav_allowed.h"
#include "core/error.h"
#include "formats/recordings.h"

namespace hark {
namespace {

constexpr int64_t kStep = 1 << 14;  // frames per call

// Returns the loudspeakers, or only the number of channels if the loudspeakers are unknown.
AVChannelLayout layout_of(const AudioBlock& like) {
    AVChannelLayout layout{};
    if (like.layout == 0 || av_channel_layout_from_mask(&layout, like.layout) < 0 ||
        layout.nb_channels != like.channels)
        av_channel_layout_default(&layout, like.channels);
    return layout;
}

}  // namespace

struct Resampler::Impl {
    SwrContext* swr = nullptr;
    int rate, in_channels, out_channels;
    uint64_t layout;
    bool mean = false;         // loudspeakers unknown: mixed by their mean before swr
    std::vector<float> mixed;  // the channels' mean

    ~Impl() { swr_free(&swr); }
    bool open(AVChannelLayout in, AVChannelLayout out);
    void convert(const float* in, int frames, Channels& out);
};

Resampler::Resampler(const AudioBlock& like, bool split_channels)
    : impl_(std::make_unique<Impl>()) {
    prepare_libav();
    Impl& s = *impl_;
    s.rate = like.rate;
    s.in_channels = like.channels;
    s.layout = like.layout;
    s.out_channels = split_channels ? like.channels : 1;
    const AVChannelLayout mono = AV_CHANNEL_LAYOUT_MONO;
    AVChannelLayout in = layout_of(like);
    if (!split_channels && in.order == AV_CHANNEL_ORDER_UNSPEC) s.mean = true;
    bool opened = !s.mean && s.open(in, split_channels ? in : mono);
    if (!opened && !split_channels) {  // swresample has no weights for some loudspeakers
        s.mean = true;
        opened = s.open(mono, mono);
    }
    require(opened, "cannot convert ", like.channels, " channels at ", like.rate, " Hz to ",
            kSampleRate, " Hz");
}

Resampler::~Resampler() = default;

int Resampler::channels() const { return impl_->out_channels; }

bool Resampler::takes(const AudioBlock& block) const {
    return block.rate == impl_->rate && block.channels == impl_->in_channels &&
           block.layout == impl_->layout;
}

bool Resampler::Impl::open(AVChannelLayout in, AVChannelLayout out) {
    int code = swr_alloc_set_opts2(&swr, &out, AV_SAMPLE_FMT_FLTP, kSampleRate, &in,
                                   AV_SAMPLE_FMT_FLT, rate, 0, nullptr);
    // The 16-bit path keeps the sum of the weights at 1; for float swresample would not.
    if (code >= 0) code = av_opt_set_double(swr, "rematrix_maxval", 1.0, 0);
    return code >= 0 && swr_init(swr) >= 0;
}

// Converts `in`, or empties the filter if that is null.
void Resampler::Impl::convert(const float* in, int frames, Channels& out) {
    const int most = swr_get_out_samples(swr, frames);
    require(most >= 0, "cannot resample");
    const size_t had = out[0].size();
    uint8_t* planes[kMaxChannels];
    for (size_t c = 0; c < out.size(); ++c) {
        out[c].resize(had + static_cast<size_t>(most));
        planes[c] = reinterpret_cast<uint8_t*>(out[c].data() + had);
    }
    const uint8_t* input = reinterpret_cast<const uint8_t*>(in);
    const int got = swr_convert(swr, planes, most, in ? &input : nullptr, frames);
    require(got >= 0, "cannot resample");
    for (std::vector<float>& channel : out) channel.resize(had + static_cast<size_t>(got));
    finish_samples(out, had);
}

void Resampler::push(const AudioBlock& block, Channels& out) {
    Impl& s = *impl_;
    out.resize(static_cast<size_t>(s.out_channels));
    const size_t channels = static_cast<size_t>(s.mean ? 1 : s.in_channels);
    const float* samples = block.samples.data();
    const int64_t frames = static_cast<int64_t>(block.samples.size()) / s.in_channels;
    if (s.mean) {
        s.mixed.assign(static_cast<size_t>(frames), 0);
        for (int64_t i = 0; i < frames; ++i)
            for (int c = 0; c < s.in_channels; ++c)
                s.mixed[static_cast<size_t>(i)] +=
                    samples[i * s.in_channels + c] / static_cast<float>(s.in_channels);
        samples = s.mixed.data();
    }
    for (int64_t at = 0; at < frames; at += kStep)
        s.convert(samples + static_cast<size_t>(at) * channels,
                  static_cast<int>(std::min(kStep, frames - at)), out);
}

void Resampler::finish(Channels& out) {
    out.resize(static_cast<size_t>(impl_->out_channels));
    impl_->convert(nullptr, 0, out);
}

}  // namespace hark
