#include "operations/doctor/libraries.h"

#include <curl/curl.h>
#include <dnnl.h>
#include <sndfile.h>

#include <algorithm>
#include <cstdlib>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswresample/swresample.h>
}

#include "core/error.h"

namespace hark::doctor {
namespace {

std::string libav_version(unsigned version) {
    return concat(AV_VERSION_MAJOR(version), ".", AV_VERSION_MINOR(version), ".",
                  AV_VERSION_MICRO(version));
}

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
    reading.libraries = {
        {"libavformat", libav_version(::avformat_version()),
         libav_version(LIBAVFORMAT_VERSION_INT)},
        {"libavcodec", libav_version(::avcodec_version()), libav_version(LIBAVCODEC_VERSION_INT)},
        {"libswresample", libav_version(::swresample_version()),
         libav_version(LIBSWRESAMPLE_VERSION_INT)},
        {"libsndfile", sndfile.substr(sndfile.find_first_of("0123456789")), ""},
        {"oneDNN", concat(dnnl->major, ".", dnnl->minor, ".", dnnl->patch),
         concat(DNNL_VERSION_MAJOR, ".", DNNL_VERSION_MINOR, ".", DNNL_VERSION_PATCH)},
        {"libcurl", ::curl_version_info(CURLVERSION_NOW)->version, LIBCURL_VERSION}};
    for (const auto& [codec, name] : {std::pair{AV_CODEC_ID_AAC, "aac"},
                                      {AV_CODEC_ID_MP3, "mp3"},
                                      {AV_CODEC_ID_OPUS, "opus"},
                                      {AV_CODEC_ID_VORBIS, "vorbis"},
                                      {AV_CODEC_ID_FLAC, "flac"},
                                      {AV_CODEC_ID_ALAC, "alac"},
                                      {AV_CODEC_ID_AC3, "ac3"},
                                      {AV_CODEC_ID_AMR_NB, "amr_nb"},
                                      {AV_CODEC_ID_WMAV2, "wmav2"},
                                      {AV_CODEC_ID_PCM_S16LE, "pcm"}})
        if (!::avcodec_find_decoder(codec)) reading.missing.push_back(name);
    return reading;
}

void judge_libraries(const LibrariesReading& reading, const Say& say) {
    std::string text, older, missing;
    for (const LibraryReading& library : reading.libraries) {
        text += concat(text.empty() ? "" : ", ", library.name, " ", library.loaded);
        if (!library.built.empty() && numbers_of(library.loaded) < numbers_of(library.built))
            older += concat("; ", library.name, " is older than ", library.built,
                            ", with which hark was built");
    }
    say({"libraries.versions", older.empty() ? Status::ok : Status::warn, text + older,
         older.empty() ? "" : "update it, or build hark on this system"});
    for (const std::string& codec : reading.missing)
        missing += concat(missing.empty() ? "" : ", ", codec);
    if (missing.empty())
        return say({"libraries.decoders", Status::ok, "libavcodec has the usual decoders"});
    say({"libraries.decoders", Status::warn, concat("libavcodec does not decode ", missing),
         "install the full FFmpeg of the system (of Fedora: ffmpeg in place of ffmpeg-free)"});
}

}  // namespace hark::doctor
