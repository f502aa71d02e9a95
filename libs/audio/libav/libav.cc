#include "audio/libav/libav.h"

#include <string>

#include "core/error.h"
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

// Why load_libav() could not; empty if it could.
std::string& failure() {
    static std::string why;
    return why;
}

}  // namespace

void load_libav() {
    try {
        libav();
    } catch (const Error& why) {
        failure() = why.what();
    }
}

std::unique_ptr<Decoder> open_libav(Input& input, int track) {
    require(failure().empty(), failure());
    return std::unique_ptr<Decoder>(libav()(input, track));
}

}  // namespace hark
