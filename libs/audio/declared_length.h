// The length that the first bytes of a file declare, where libav does not pass it on.
#pragma once

#include "audio/input.h"

namespace hark {

// Seconds; 0 if the file declares none. Takes nothing from the input. Reads:
// - MP3: number of frames in the Xing, Info or VBRI tag, which libav reads of seekable files alone.
//   Source: Xing, VBR header SDK, 1999; Fraunhofer, VBRI header, 2000.
// - ASF: the play duration, which libav drops if the file is shorter than it should be.
//   Source: Microsoft, Advanced Systems Format Specification, 2004, section 3.2.
// - W64: the size of its data, which libav replaces by the size of the file.
//   Source: Sonic Foundry, Wave 64 file format.
// - WAV: see wav_seconds(). libav estimates ADPCM's from its bits.
double declared_seconds(Input& input);

}  // namespace hark
