#include "audio/libav/libav.h"

#include <string>

#include "core/error.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

struct Library {
    OpenLibav open = nullptr;
    FillLibavVersions versions = nullptr;
    std::string failure;  // why there is none
};

Library load() {
    Library made;
    try {
        const Plugin plugin({.file = "libhark-av.so",
                             .abi_name = "hark_av_abi",
                             .abi = kLibavAbi,
                             .without = "only WAV can be read",
                             .built = "it is built and installed with the tools",
                             .needs = "FFmpeg's libraries must be installed"});
        made.open = plugin.symbol<OpenLibav>("hark_av_open");
        made.versions = plugin.symbol<FillLibavVersions>("hark_av_versions");
    } catch (const Error& why) {
        made.failure = why.what();
    }
    return made;
}

const Library& library() {
    static const Library kLibrary = load();
    return kLibrary;
}

const Library& working_library() {
    require(library().failure.empty(), library().failure);
    return library();
}

}  // namespace

void load_libav() { library(); }

std::unique_ptr<Decoder> open_libav(Input& input, int track, Helpers* helpers) {
    return std::unique_ptr<Decoder>(working_library().open(input, track, helpers));
}

LibavVersions libav_versions() {
    LibavVersions found;
    working_library().versions(found);
    return found;
}

}  // namespace hark
