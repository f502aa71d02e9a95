#include "operations/doctor/libraries.h"

#include <curl/curl.h>
#include <dnnl.h>
#include <sndfile.h>

#include <algorithm>
#include <cstdlib>

extern "C" {
#include <libswresample/swresample.h>
}

#include "core/error.h"

namespace hark::doctor {
namespace {

// The numbers of "59.27.100"; what follows the third is left out.
std::vector<long> numbers_of(const std::string& version) {
    std::vector<long> numbers;
    const char* at = version.c_str();
    while (*at && (*at < '0' || *at > '9')) ++at;
    for (char* end = nullptr; numbers.size() < 3; at = end + 1) {
        numbers.push_back(std::strtol(at, &end, 10));
        if (*end != '.') break;
    }
    return numbers;
}

}  // namespace

LibrariesReading read_libraries() {
    LibrariesReading reading;
    const dnnl_version_t* const dnnl = dnnl_version();
    // "libsndfile-1.2.0"
    const std::string sndfile = ::sf_version_string();
    try {
        LibavVersions libav = libav_versions();
        reading.libraries = std::move(libav.versions);
        reading.missing = std::move(libav.missing_codecs);
    } catch (const Error& why) {
        reading.no_libav = why.what();
    }
    for (const LibraryVersion& library :
         {LibraryVersion{"libswresample", libav_version_text(::swresample_version()),
                         libav_version_text(LIBSWRESAMPLE_VERSION_INT)},
          {"libsndfile", sndfile.substr(sndfile.find_first_of("0123456789")), ""},
          {"oneDNN", concat(dnnl->major, ".", dnnl->minor, ".", dnnl->patch),
           concat(DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR, ".", DNNL_VERSION_PATCH)},
          {"libcurl", ::curl_version_info(CURLVERSION_NOW)->version, LIBCURL_VERSION}})
        reading.libraries.push_back(library);
    return reading;
}

void judge_libraries(const LibrariesReading& reading, const Say& say) {
    std::string text, older, missing;
    for (const LibraryVersion& library : reading.libraries) {
        text += concat(text.empty() ? "" : ", ", library.name, " ", library.loaded);
        if (!library.built.empty() && numbers_of(library.loaded) < numbers_of(library.built))
            older += concat("; ", library.name, " is older than ", library.built,
                            ", with which hark was built");
    }
    say({"libraries.versions", older.empty() ? Status::ok : Status::warn, text + older,
         older.empty() ? "" : "update it, or build hark on this system"});
    if (!reading.no_libav.empty())
        return say({"libraries.decoders", Status::fail, reading.no_libav,
                    "install FFmpeg's libraries, or the package of hark that has them"});
    for (const std::string& codec : reading.missing)
        missing += concat(missing.empty() ? "" : ", ", codec);
    if (missing.empty())
        return say({"libraries.decoders", Status::ok, "libavcodec has the usual decoders"});
    say({"libraries.decoders", Status::warn, concat("libavcodec does not decode ", missing),
         "install the full FFmpeg of the system (of Fedora: ffmpeg in place of ffmpeg-free)"});
}

}  // namespace hark::doctor
