extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include "audio/libav/libav.h"
#include "kernels/runtime/plugin.h"

HARK_EXPORT void hark_av_versions(hark::LibavVersions& found) {
    using hark::libav_version_text;
    found.versions = {{"libavformat", libav_version_text(::avformat_version()),
                       libav_version_text(LIBAVFORMAT_VERSION_INT)},
                      {"libavcodec", libav_version_text(::avcodec_version()),
                       libav_version_text(LIBAVCODEC_VERSION_INT)}};
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
        if (!::avcodec_find_decoder(codec)) found.missing_codecs.push_back(name);
}
