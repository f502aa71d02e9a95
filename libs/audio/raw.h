// PCM without a container, or what stands inside one.
#pragma once

#include <cstdint>
#include <string>

#include "audio/decoder.h"
#include "audio/pcm.h"

namespace hark {

struct RawFormat {
    PcmFormat format = PcmFormat::s16;
    int rate = 16000;  // Hz
    int channels = 1;
    uint64_t layout = 0;
};

// Reads PCM from where the input stands. `bytes` is how many a header promises, or -1 where nobody
// knows: then all until the end. Throws Error where the input ends before them, or inside a frame.
class RawDecoder : public Decoder {
  public:
    RawDecoder(Input& input, const RawFormat& format, int64_t bytes = -1);
    bool next(AudioBlock& block) override;

  private:
    Input& input_;
    RawFormat format_;
    int64_t promised_;
    int64_t taken_ = 0;
    std::vector<unsigned char> bytes_;
    size_t held_ = 0;  // bytes of a frame that has not come whole
};

}  // namespace hark
