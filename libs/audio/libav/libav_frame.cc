#include "audio/libav/libav_frame.h"

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/samplefmt.h>
}

#include <type_traits>

#include "core/error.h"

namespace hark {
namespace {

// Appends the sample values of a frame, planar or interleaved, times a power of two.
template <class T>
void append_interleaved(const AVFrame& frame, double scale, UnfilledSamples& out) {
    const bool planar = av_sample_fmt_is_planar(static_cast<AVSampleFormat>(frame.format));
    const size_t channels = static_cast<size_t>(frame.ch_layout.nb_channels);
    const size_t frames = static_cast<size_t>(frame.nb_samples), had = out.size();
    out.resize(had + frames * channels);
    // A plane holds one channel, or all of them interleaved.
    const size_t planes = planar ? channels : 1, count = frames * channels / planes;
    for (size_t c = 0; c < planes; ++c) {
        const T* from = reinterpret_cast<const T*>(frame.extended_data[c]);
        float* to = out.data() + had + c;
        constexpr bool kSmall = sizeof(T) <= 4;  // a float scales it without rounding twice
        using Real = std::conditional_t<kSmall, float, double>;
        const Real factor = static_cast<Real>(scale);
        const auto value = [&](size_t i) {
            return static_cast<float>(static_cast<Real>(from[i]) * factor);
        };
        if (planes == 1)
            for (size_t i = 0; i < count; ++i) to[i] = value(i);
        else
            for (size_t i = 0; i < count; ++i) to[planes * i] = value(i);
    }
}

}  // namespace

void append_frame(const AVFrame& frame, UnfilledSamples& out) {
    const size_t had = out.size();
    switch (av_get_packed_sample_fmt(static_cast<AVSampleFormat>(frame.format))) {
        case AV_SAMPLE_FMT_U8:
            append_interleaved<uint8_t>(frame, 1.0 / 128, out);
            for (size_t i = had; i < out.size(); ++i) out[i] -= 1;
            return;
        case AV_SAMPLE_FMT_S16:
            return append_interleaved<int16_t>(frame, 1.0 / 32768, out);
        case AV_SAMPLE_FMT_S32:
            return append_interleaved<int32_t>(frame, 1.0 / (1ll << 31), out);
        case AV_SAMPLE_FMT_S64:
            return append_interleaved<int64_t>(frame, 0.5 / (1ll << 62), out);
        case AV_SAMPLE_FMT_FLT:
            return append_interleaved<float>(frame, 1, out);
        case AV_SAMPLE_FMT_DBL:
            return append_interleaved<double>(frame, 1, out);
        default:
            fail("unknown sample format ", frame.format);
    }
}

}  // namespace hark
