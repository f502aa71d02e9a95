// PCM without a container, or inside one.
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

// Reads PCM from the input's position on. `bytes` is the length that a header declares, or -1 if it
// is unknown: then the input is read to its end. An input that ends earlier, or inside a frame, is
// a loss().
class RawDecoder : public Decoder {
  public:
    RawDecoder(Input& input, const RawFormat& format, int64_t bytes = -1);
    bool next(AudioBlock& block) override;
    Loss loss() const override;

  private:
    Input& input_;
    RawFormat format_;
    size_t frame_;      // bytes
    int64_t declared_;  // bytes
    int64_t taken_ = 0;
    bool ended_ = false;
    std::vector<unsigned char> bytes_;
    size_t held_ = 0;  // bytes of an incomplete frame
};

}  // namespace hark
