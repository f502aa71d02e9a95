#include "audio/libav/libav_length.h"

extern "C" {
#include <libavformat/avformat.h>
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "audio/coverage.h"

namespace hark {
namespace {

// avformat's placeholders for a length that a pipe cannot know: AVI's frames, RealMedia's seconds.
constexpr int64_t kUnknownAviFrames = 0x40000000;
constexpr double kUnknownRmSeconds = 3600;

// Where a stream ends by the number of its frames; 0 if that is unknown.
double counted_end(const AVFormatContext& format, int index) {
    const AVStream& stream = *format.streams[index];
    const bool known = stream.nb_frames > 0 && stream.nb_frames < kUnknownAviFrames;
    return known ? seconds_of(stream.nb_frames, stream) : 0;
}

// Whether another stream of an AVI reached its end: this one may have empty packets at its start,
// which are counted too.
bool another_is_whole(const AVFormatContext& format, int index,
                      std::span<const double> stream_ends) {
    for (size_t i = 0; i < stream_ends.size(); ++i) {
        const double end = counted_end(format, static_cast<int>(i));
        if (static_cast<int>(i) != index && end > 0 && end - stream_ends[i] <= kMaxMissing)
            return true;
    }
    return false;
}

}  // namespace

bool is_container(const AVFormatContext& format, const char* name) {
    return std::strstr(format.iformat->name, name) != nullptr;
}

double seconds_of(int64_t time, const AVStream& stream) {
    if (time == AV_NOPTS_VALUE) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(time) * av_q2d(stream.time_base);
}

bool states_each_stream(const AVFormatContext& format, int index) {
    return is_container(format, "mp4") || format.nb_streams == 1 ||
           av_dict_get(format.streams[index]->metadata, "DURATION", nullptr, 0);
}

double stated_end(const AVFormatContext& format, int index, std::span<const double> stream_ends,
                  double longest_frame) {
    const AVStream& stream = *format.streams[index];
    if (is_container(format, "ogg") || is_container(format, "mpeg") || is_container(format, "wav"))
        return 0;
    if (is_container(format, "avi") || is_container(format, "caf")) {
        const double end = counted_end(format, index);
        if (is_container(format, "avi") && another_is_whole(format, index, stream_ends)) return 0;
        // CAF's packet table counts whole packets, and the last one may not be full.
        const bool table = is_container(format, "caf") && stream.duration != AV_NOPTS_VALUE &&
                           format.duration_estimation_method != AVFMT_DURATION_FROM_BITRATE;
        return table ? std::max(0.0, end - longest_frame) : end;
    }
    if (const AVDictionaryEntry* tag = av_dict_get(stream.metadata, "DURATION", nullptr, 0)) {
        int hours = 0, minutes = 0;  // of this Matroska track
        double rest = 0;
        if (std::sscanf(tag->value, "%d:%d:%lf", &hours, &minutes, &rest) == 3)
            return hours * 3600 + minutes * 60 + rest;
    }
    if (format.duration_estimation_method == AVFMT_DURATION_FROM_BITRATE) return 0;
    double end = seconds_of(stream.duration, stream);
    // An MP4 without fragments, whose tables count its frames, states the length after the start.
    if (is_container(format, "mp4") && stream.nb_frames > 0 && stream.start_time > 0)
        end += seconds_of(stream.start_time, stream);
    if (std::isnan(end) && format.duration != AV_NOPTS_VALUE)
        end = static_cast<double>(format.duration) / AV_TIME_BASE;
    if (is_container(format, "rm") && end == kUnknownRmSeconds) return 0;
    return end > 0 ? end : 0;
}

}  // namespace hark
