// What every reader of audio gives: samples as the file has them, block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
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
    // Reads the next block; false at the end. Throws Error naming the input if it cannot be read.
    virtual bool next(AudioBlock& block) = 0;
    // What was lost of the recording up to here: "ends at 13.3 of 26.7 s" or "3.2 s are missing at
    // 12.0 s"; empty if nothing was. The end is checked once next() has returned false.
    virtual std::string loss() const { return ""; }
};

inline constexpr int kMinRate = 1000, kMaxRate = 768000;  // Hz that are believed
inline constexpr int kMaxChannels = 64;

// Finds out what `input` is and opens it: PCM in WAV by our own reader; everything else by libav,
// and by libsndfile what libav refuses. `track` counts the audio tracks of a container from 0.
// A pipe is decoded while it is read if the format allows that, and kept in an unlinked file first
// where its reader must seek. `input` must outlive the decoder. Throws Error naming the input.
std::unique_ptr<Decoder> open_decoder(Input& input, int track);

}  // namespace hark
