// Small pieces of audio for the tests, and the chunks that come out of the tools.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/recordings.h"

namespace hark::test {

// Bytes, the least significant first.
std::string little_endian(uint64_t value, size_t bytes);

// A chunk of a RIFF file; `size` is in its header, by default the data's.
std::string riff_chunk(const std::string& id, const std::string& data, int64_t size = -1);

// A WAV file: tag 1 for whole numbers, 3 for floats. data_size as for riff_chunk.
std::string wav_file(int tag, int bytes, int rate, int channels, const std::string& data,
                     int64_t data_size = -1);

// 16-bit mono WAV of a seeded noise, 16 kHz.
std::string noise_wav(uint64_t seed, int64_t samples);

// The chunks of a tensor stream of audio or mel.
std::vector<Chunk> read_chunks(const std::string& stream, const std::string& kind);

// A recording's chunks put end to end.
struct Whole {
    std::string source, channel, error;
    int64_t chunks = 0;
    std::vector<float> values;  // samples, or frames of n_mels values
    int64_t n_mels = 0;
    Metadata last;  // the last chunk's metadata
};
std::map<std::string, Whole> join(const std::vector<Chunk>& chunks);

// The document of an audio chunk as bytes.
std::string audio_document(const std::string& recording, int64_t start,
                           const std::vector<float>& samples, bool last, const Metadata& more = {},
                           const std::string& error = "");

}  // namespace hark::test
