#include "audio/libav/libav.h"

#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

OpenLibav libav() {
    static const OpenLibav kOpen = Plugin({.file = "libhark-av.so",
                                           .abi_name = "hark_av_abi",
                                           .abi = kLibavAbi,
                                           .without = "only WAV can be read",
                                           .built = "it is built and installed with the tools",
                                           .needs = "FFmpeg's libraries must be installed"})
                                       .symbol<OpenLibav>("hark_av_open");
    return kOpen;
}

}  // namespace

void load_libav() { libav(); }

std::unique_ptr<Decoder> open_libav(Input& input, int track) {
    return std::unique_ptr<Decoder>(libav()(input, track));
}

}  // namespace hark
