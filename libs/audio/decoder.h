// What every reader of audio gives: samples as they stand in the file, block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "audio/input.h"

namespace hark {

struct AudioBlock {
    int rate = 0;  // Hz
    int channels = 0;
    uint64_t layout = 0;  // a bit a loudspeaker, in WAVE_FORMAT_EXTENSIBLE's order; 0 if unknown
    std::vector<float> samples;  // interleaved, full scale at 1
};

class Decoder {
  public:
    virtual ~Decoder() = default;
    // The next block, or false at the end of a recording that is whole. Throws Error naming the
    // input where it breaks; the blocks before that have been given.
    virtual bool next(AudioBlock& block) = 0;
};

inline constexpr int kMinRate = 1000, kMaxRate = 768000;  // Hz that are believed
inline constexpr int kMaxChannels = 64;

// Finds out what `input` is and opens it: PCM in WAV by our own reader; everything else by libav,
// and by libsndfile what libav refuses. `track` counts the audio tracks of a container from 0.
// A pipe is decoded as it comes where the format allows that, and kept in an unlinked file first
// where its reader must seek. `input` must outlive the decoder. Throws Error naming the input.
std::unique_ptr<Decoder> open_decoder(Input& input, int track);

}  // namespace hark
