// Checks and clips the output of every resampler.
#include <algorithm>
#include <cmath>
#include <span>

#include "audio/resampler.h"
#include "core/error.h"
#include "core/finite.h"

namespace hark {
namespace {

// swresample's conversion of floats to 16 bits: av_clip_int16(lrintf(x * 32768)).
constexpr float kMin = -1.0f, kMax = 32767.0f / 32768.0f;

}  // namespace

void finish_samples(Channels& out, size_t had) {
    size_t good = out[0].size();
    for (const std::vector<float>& channel : out) {
        if (all_finite(std::span(channel).subspan(had))) continue;
        const auto bad = std::find_if(channel.begin() + static_cast<ptrdiff_t>(had), channel.end(),
                                      [](float x) { return !std::isfinite(x); });
        good = std::min(good, static_cast<size_t>(bad - channel.begin()));
    }
    const bool finite = good == out[0].size();
    for (std::vector<float>& channel : out) {
        channel.resize(good);
        for (size_t i = had; i < good; ++i) channel[i] = std::clamp(channel[i], kMin, kMax);
    }
    require(finite, "a sample is not finite (NaN or infinity)");
}

}  // namespace hark
