#include "audio/libav/libav_allowed.h"

extern "C" {
#include <libavutil/avstring.h>
#include <libavutil/log.h>
#include <libavutil/mem.h>
}

#include <cstddef>
#include <mutex>

namespace hark {
namespace {

constexpr size_t kMaxPiece = size_t{512} << 20;  // bytes

}  // namespace

const char* const kAllowedFormats =
    // Files and streams of several tracks.
    "asf,asf_o,avi,dv,flv,gxf,matroska,mov,mp4,mpeg,mpegts,mxf,nut,ogg,rm,webm,wtv,"
    // Sound alone.
    "aac,ac3,adx,aiff,ape,au,caf,dts,dtshd,eac3,flac,ircam,loas,mlp,mp3,mpc,mpc8,oma,shn,sox,tak,"
    "truehd,tta,voc,w64,wav,wv,xwma,"
    // Telephones, dictation machines, corpora of speech.
    "alaw,amr,amrnb,amrwb,dss,g722,g723_1,g729,gsm,ilbc,mulaw,nistsphere,pvf,qcp,sln,wve";

const char* const kAllowedCodecs =
    "aac,aac_fixed,aac_latm,ac3,ac3_fixed,alac,als,ape,atrac1,atrac3,atrac3al,atrac3plus,"
    "atrac3plusal,cook,dca,dvaudio,eac3,flac,mlp,mp1,mp1float,mp2,mp2float,mp3,mp3float,mpc7,mpc8,"
    "nellymoser,opus,libopus,qdm2,qdmc,ralf,real_144,real_288,s302m,shorten,tak,truehd,tta,vorbis,"
    "libvorbis,wavpack,wmalossless,wmapro,wmav1,wmav2,wmavoice,"
    "amrnb,amrwb,libopencore_amrnb,libopencore_amrwb,dss_sp,evrc,g722,g723_1,g726,g726le,g729,gsm,"
    "gsm_ms,libgsm,libgsm_ms,ilbc,qcelp,sipr,speex,libspeex,truespeech,"
    "adpcm_adx,adpcm_ima_qt,adpcm_ima_wav,adpcm_ms,adpcm_sbpro_2,adpcm_sbpro_3,adpcm_sbpro_4,"
    "adpcm_swf,adpcm_yamaha,"
    "pcm_alaw,pcm_bluray,pcm_dvd,pcm_f32be,pcm_f32le,pcm_f64be,pcm_f64le,pcm_mulaw,pcm_s16be,"
    "pcm_s16be_planar,pcm_s16le,pcm_s16le_planar,pcm_s24be,pcm_s24le,pcm_s24le_planar,pcm_s32be,"
    "pcm_s32le,pcm_s32le_planar,pcm_s8,pcm_s8_planar,pcm_u16be,pcm_u16le,pcm_u24be,pcm_u24le,"
    "pcm_u32be,pcm_u32le,pcm_u8";

bool is_allowed(const char* names, const char* list) { return av_match_list(names, list, ',') > 0; }

void prepare_libav() {
    static std::once_flag once;
    std::call_once(once, [] {
        av_log_set_level(AV_LOG_QUIET);
        av_max_alloc(kMaxPiece);
    });
}

}  // namespace hark
