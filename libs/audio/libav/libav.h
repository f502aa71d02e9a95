// Audio in everything that libavformat and libavcodec read, video too. They are in libhark-av.so,
// which is opened on first use: their 130 libraries take 60 ms at a program's start.
#pragma once

#include <memory>

#include "audio/decoder.h"

namespace hark {

// Opens libhark-av.so. If it cannot be opened, open_libav() throws Error that says why.
void load_libav();

// Throws Error naming the input if libav finds no container, no such track or no codec, or one that
// is not allowed (libav_allowed.h).
std::unique_ptr<Decoder> open_libav(Input& input, int track);

// hark_av_open(): what open_libav() returns, for the caller to delete.
using OpenLibav = Decoder* (*)(Input& input, int track);

// Increase it with every change of Decoder or Input: a library of another build is refused.
inline constexpr int kLibavAbi = 1;

}  // namespace hark
