#include "audio/libav/libav.h"

#include <string>

#include "core/error.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

struct Library {
    OpenLibav open = nullptr;
    std::string failure;  // why there is none
};

Library load() {
    Library made;
    try {
        made.open = Plugin({.file = "libhark-av.so",
                            .abi_name = "hark_av_abi",
                            .abi = kLibavAbi,
                            .without = "only WAV can be read",
                            .built = "it is built and installed with the tools",
                            .needs = "FFmpeg's libraries must be installed"})
                        .symbol<OpenLibav>("hark_av_open");
    } catch (const Error& why) {
        made.failure = why.what();
    }
    return made;
}

const Library& library() {
    static const Library kLibrary = load();
    return kLibrary;
}

}  // namespace

void load_libav() { library(); }

std::unique_ptr<Decoder> open_libav(Input& input, int track) {
    require(library().open != nullptr, library().failure);
    return std::unique_ptr<Decoder>(library().open(input, track));
}

}  // namespace hark
