// WAV files, also those written to a pipe, without a length.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "audio/decoder.h"

namespace hark {

// Opens PCM in RIFF, RF64 or BW64: 8 to 32 bits, float, double, WAVE_FORMAT_EXTENSIBLE; chunks
// before the data are skipped. A data size of 0 or near 2 or 4 GiB, as ffmpeg and sox write to a
// pipe, means all until the end; any other is the declared length.
// Returns nullptr and consumes nothing for other files and codecs.
// Source: Microsoft, Multimedia Programming Interface, 1991; mmreg.h; EBU Tech 3306 (RF64).
std::unique_ptr<Decoder> open_wav(Input& input);

// Whether open_wav() opens it. Consumes nothing.
bool is_pcm_wav(Input& input);
// Whether all are such files; "-" is standard input, whose position stays. False if one cannot be
// read or is a pipe, and for more than 64, which are not looked at: opening them would take longer
// than loading libav.
bool are_pcm_wav_files(std::span<const std::string> paths);

// The length that the header declares of other codecs, in seconds; 0 if it is unknown. A-law,
// mu-law and ADPCM by the size of their data, all others by the `fact` chunk.
double wav_seconds(Input& input);

}  // namespace hark
