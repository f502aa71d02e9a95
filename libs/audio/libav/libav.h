// Audio in everything that libavformat and libavcodec read, video too.
#pragma once

#include <memory>

#include "audio/decoder.h"

namespace hark {

// Throws Error naming the input if libav finds no container, no such track or no codec, or one that
// is not allowed (libav_allowed.h).
std::unique_ptr<Decoder> open_libav(Input& input, int track);

}  // namespace hark
