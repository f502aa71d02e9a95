// Audio in everything that libavformat and libavcodec read, video too.
#pragma once

#include <memory>

#include "audio/decoder.h"

namespace hark {

// Throws Error naming the input if libav finds no container, no such track or no codec. A playlist
// cannot open the files that it names.
std::unique_ptr<Decoder> open_libav(Input& input, int track);

// Turns off libav's messages on stderr: hark reports errors itself.
void silence_libav();

}  // namespace hark
