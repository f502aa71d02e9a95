// Audio in everything that libavformat and libavcodec read, video too. They are in libhark-av.so,
// which is opened on first use: their 130 libraries take 60 ms at a program's start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "audio/decoder.h"
#include "core/error.h"

namespace hark {

// Opens libhark-av.so. If it cannot be opened, open_libav() throws Error that says why.
void load_libav();

// Throws Error naming the input if libav finds no container, no such track or no codec, or one that
// is not allowed (libav_allowed.h). `helpers` may be null.
std::unique_ptr<Decoder> open_libav(Input& input, int track, Helpers* helpers);

// A library: its version at run time, and of the headers that hark was built with.
struct LibraryVersion {
    std::string name;           // "libavformat"
    std::string loaded, built;  // "59.27.100"; built is empty if the headers do not say
};

// "59.27.100" of a version as FFmpeg's libraries give it: a byte for each of the last two numbers.
inline std::string libav_version_text(unsigned version) {
    return concat(version >> 16, ".", version >> 8 & 255, ".", version & 255);
}

struct LibavVersions {
    std::vector<LibraryVersion> versions;     // of libavformat and libavcodec
    std::vector<std::string> missing_codecs;  // usual ones of recordings not decoded here: "opus"
};

// Throws Error that says why libhark-av.so cannot be opened.
LibavVersions libav_versions();

// hark_av_open(): what open_libav() returns, for the caller to delete. hark_av_versions() fills in
// what libav_versions() returns.
using OpenLibav = Decoder* (*)(Input& input, int track, Helpers* helpers);
using FillLibavVersions = void (*)(LibavVersions& found);

// Increase it with every change of Decoder, Input, Helpers or LibavVersions: a library of another
// build is refused.
inline constexpr int kLibavAbi = 4;

}  // namespace hark
