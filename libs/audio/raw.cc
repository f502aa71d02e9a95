#include "audio/raw.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace hark {

RawDecoder::RawDecoder(Input& input, const RawFormat& format, int64_t bytes)
    : input_(input), format_(format), promised_(bytes), bytes_(size_t{1} << 16) {
    require(format.rate >= kMinRate && format.rate <= kMaxRate, input.name(), ": expected ",
            kMinRate, " to ", kMaxRate, " samples a second, found ", format.rate);
    require(format.channels >= 1 && format.channels <= kMaxChannels, input.name(),
            ": expected 1 to ", kMaxChannels, " channels, found ", format.channels);
}

bool RawDecoder::next(AudioBlock& block) {
    const size_t frame = pcm_bytes(format_.format) * static_cast<size_t>(format_.channels);
    for (;;) {
        size_t room = bytes_.size() - held_;
        if (promised_ >= 0)
            room = static_cast<size_t>(
                std::min<int64_t>(static_cast<int64_t>(room), promised_ - taken_));
        // Whatever has come, so that live input goes on at once.
        const size_t got = room == 0 ? 0 : input_.read_some(bytes_.data() + held_, room);
        taken_ += static_cast<int64_t>(got);
        held_ += got;
        if (got == 0) {
            require(promised_ < 0 || taken_ == promised_, input_.name(),
                    ": the input ends too soon: expected ", promised_, " bytes of samples, found ",
                    taken_);
            require(held_ == 0, input_.name(), ": the input ends inside a sample: ", held_,
                    " bytes are left of ", frame);
            return false;
        }
        const size_t frames = held_ / frame;
        if (frames == 0) continue;
        block.rate = format_.rate;
        block.channels = format_.channels;
        block.layout = format_.layout;
        block.samples.clear();
        append_pcm(format_.format, bytes_.data(), frames * static_cast<size_t>(format_.channels),
                   block.samples);
        held_ -= frames * frame;
        std::memmove(bytes_.data(), bytes_.data() + frames * frame, held_);
        return true;
    }
}

}  // namespace hark
