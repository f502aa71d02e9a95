// The length that a container states, by what libav has read of it.
#pragma once

#include <cstdint>
#include <span>

struct AVFormatContext;
struct AVStream;

namespace hark {

// Whether `name` is one of the names that libav has for the container.
bool is_container(const AVFormatContext& format, const char* name);

// A time in a stream's units; NaN if it is unknown.
double seconds_of(int64_t time, const AVStream& stream);

// Whether the container states the length of stream `index` itself, not only that of all together.
bool states_each_stream(const AVFormatContext& format, int index);

// Where stream `index` ends, in seconds of its timestamps; 0 if nothing states it exactly.
// `stream_ends` are the ends of each stream's packets, `longest_frame` is in seconds. Ogg and MPEG
// streams state nothing: libav takes their length from the last timestamp. WAV is read elsewhere.
double stated_end(const AVFormatContext& format, int index, std::span<const double> stream_ends,
                  double longest_frame);

}  // namespace hark
