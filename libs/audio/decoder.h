// The interface of all readers of audio: samples at the file's own rate, block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "audio/helpers.h"
#include "audio/input.h"

namespace hark {

struct AudioBlock {
    int rate = 0;  // Hz
    int channels = 0;
    uint64_t layout = 0;  // one bit per loudspeaker, as in WAVE_FORMAT_EXTENSIBLE; 0 if unknown
    std::vector<float> samples;  // interleaved, full scale at 1
    // In place of the samples: a part that a helper has decoded, by its sink.
    std::shared_ptr<PartSink> part = nullptr;
};

// What a recording lacks up to where it has been decoded.
struct Loss {
    std::string text;  // "ends at 13.3 of 26.7 s" or "3.2 s are missing at 12.0 s"; empty: nothing
    bool is_end = false;  // only the end is missing
};

class Decoder {
  public:
    virtual ~Decoder() = default;
    // Reads the next block; false at the end. Throws Error naming the input if it cannot be read.
    virtual bool next(AudioBlock& block) = 0;
    // The end is checked after next() has returned false.
    virtual Loss loss() const { return {}; }
};

inline constexpr int kMinRate = 1000, kMaxRate = 768000;  // Hz; others are refused as damage
inline constexpr int kMaxChannels = 64;

// Loads the libraries that open_decoder() may need for other inputs than PCM in WAV (33 ms, Zen
// 4). Call it before a sandbox, in which nothing can be loaded. Those that are missing are named by
// open_decoder(), for a file that needs them.
void load_decoders();

// Opens the decoder for `input`: our own reader for PCM in WAV, libav for everything else,
// libsndfile if libav refuses it. `track` counts a container's audio tracks from 0. A pipe is
// decoded while it is read if the format allows that; otherwise it is first copied to an unlinked
// file. `helpers`, if they are not null, are offered parts of a long file. Both must outlive the
// decoder. Throws Error naming the input.
std::unique_ptr<Decoder> open_decoder(Input& input, int track, Helpers* helpers = nullptr);

}  // namespace hark
