// Everything that libavformat and libavcodec read, sound inside video too.
#pragma once

#include <memory>

#include "audio/decoder.h"

namespace hark {

// Throws Error naming the input where libav finds no container, no such track or no codec.
// What names other files (playlists) cannot open them.
std::unique_ptr<Decoder> open_libav(Input& input, int track);

// What libav and swresample would print on stderr is said in our errors instead.
void silence_libav();

}  // namespace hark
