// PCM that comes piece by piece, as chunks of its log-mel spectrum: `mel --raw s16le` without a
// file.
#pragma once

#include <string>
#include <string_view>

#include "audio/mel_stream.h"
#include "audio/resampler.h"

namespace hark {

class PcmMel {
  public:
    // Takes one recording, called `source`: 16-bit little-endian samples of one channel at `rate`
    // Hz, from kMinRate to kMaxRate.
    PcmMel(int rate, std::string source, const MelOptions& options);

    // Takes the next bytes, cut anywhere, and emits the chunks that they complete.
    void push(std::string_view bytes, const MelStream::Emit& emit);
    // Ends the recording: emits its last chunk, with an error if the bytes end inside a sample.
    // Emits nothing if there was no sample.
    void finish(const MelStream::Emit& emit);

  private:
    void push_samples(bool is_last, const std::string& error, const MelStream::Emit& emit);

    std::string source_;
    AudioBlock block_;
    Resampler resampler_;
    MelStream mel_;
    Channels samples_;      // at 16 kHz, that the mel stream does not have yet
    int64_t pushed_ = 0;    // samples at 16 kHz that it has
    std::string held_;      // the first byte of a sample
    bool has_any_ = false;  // sample
};

}  // namespace hark
