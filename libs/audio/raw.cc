#include "audio/raw.h"

#include <algorithm>
#include <cstring>

#include "audio/coverage.h"
#include "core/error.h"
#include "formats/recordings.h"

namespace hark {

RawDecoder::RawDecoder(Input& input, const RawFormat& format, int64_t bytes)
    : input_(input),
      format_(format),
      frame_(pcm_bytes(format.format) * static_cast<size_t>(format.channels)),
      declared_(bytes),
      bytes_(size_t{1} << 16) {
    require(format.rate >= kMinRate && format.rate <= kMaxRate, input.name(),
            ": sample rate out of range (got ", format.rate, " Hz, expected ", kMinRate, " to ",
            kMaxRate, ")");
    require(format.channels >= 1 && format.channels <= kMaxChannels, input.name(),
            ": too many or no channels (got ", format.channels, ", expected 1 to ", kMaxChannels,
            ")");
}

bool RawDecoder::next(AudioBlock& block) {
    for (;;) {
        size_t room = bytes_.size() - held_;
        if (declared_ >= 0)
            room = static_cast<size_t>(
                std::min<int64_t>(static_cast<int64_t>(room), declared_ - taken_));
        // Takes what has arrived, so that live input passes at once.
        const size_t got = room == 0 ? 0 : input_.read_some(bytes_.data() + held_, room);
        taken_ += static_cast<int64_t>(got);
        held_ += got;
        ended_ = got == 0;
        if (ended_) return false;
        const size_t frames = held_ / frame_;
        if (frames == 0) continue;
        block.rate = format_.rate;
        block.channels = format_.channels;
        block.layout = format_.layout;
        block.samples.clear();
        append_pcm(format_.format, bytes_.data(), frames * static_cast<size_t>(format_.channels),
                   block.samples);
        held_ -= frames * frame_;
        std::memmove(bytes_.data(), bytes_.data() + frames * frame_, held_);
        return true;
    }
}

Loss RawDecoder::loss() const {
    const auto seconds = [&](int64_t bytes) {
        return static_cast<double>(bytes) / static_cast<double>(frame_) / format_.rate;
    };
    if (!ended_) return {};
    if (taken_ < declared_) return {ends_at(seconds(taken_), seconds(declared_)), true};
    if (held_ == 0 || declared_ >= 0) return {};
    return {concat("ends inside a sample (got ", held_, " of ", frame_, " bytes)")};
}

}  // namespace hark
