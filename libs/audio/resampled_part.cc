#include "audio/resampled_part.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "formats/recordings.h"

namespace hark {
namespace {

// Of the first samples, those that see the beginning: the filter has 32 taps at the lower rate.
constexpr size_t kSettling = 128;

}  // namespace

void ResampledPart::push(const AudioBlock& block) {
    const int64_t common = std::gcd(block.rate, static_cast<int64_t>(kSampleRate));
    const int64_t period = block.rate / common;
    if (!resampler_) resampler_ = std::make_unique<Resampler>(block, split_channels_);
    require(resampler_->takes(block), "the format changes");
    const int64_t frames = std::ssize(block.samples) / block.channels;
    const int64_t dropped =
        out_.empty() ? std::min(frames, (period - position_ % period) % period) : 0;
    position_ += dropped;
    if (dropped == frames) return;
    if (out_.empty()) first_ = position_ / period * (kSampleRate / common);
    if (dropped > 0) {
        rest_ = {block.rate, block.channels, block.layout, {}};
        rest_.samples.assign(block.samples.begin() + dropped * block.channels, block.samples.end());
    }
    resampler_->push(dropped > 0 ? rest_ : block, out_);
    if (has_begun_) ends_.push_back(out_[0].size());
}

void ResampledPart::begin() {
    require(!out_.empty() && out_[0].size() >= kSettling, "the pre-roll is too short");
    has_begun_ = true;
}

void ResampledPart::take(int64_t produced, int64_t most, Channels& out) const {
    const int64_t from = produced - first_;
    require(from >= static_cast<int64_t>(kSettling) / 2 && from <= std::ssize(out_[0]),
            "internal error: a part begins at sample ", first_, ", expected before ", produced);
    size_t end = out_[0].size();
    for (const size_t block : ends_)
        if (static_cast<int64_t>(block) - from > most) {
            end = block;
            break;
        }
    for (size_t c = 0; c < out.size(); ++c)
        out[c].insert(out[c].end(), out_[c].begin() + from,
                      out_[c].begin() + static_cast<ptrdiff_t>(end));
}

}  // namespace hark
