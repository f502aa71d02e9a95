// What recordings may ask of libav: the formats and codecs of speech and music that people have,
// not playlists, pictures, devices and games. Each part of libav that is left out cannot be
// attacked.
#pragma once

namespace hark {

// Comma-separated names, as libav's own lists have them.
extern const char* const kAllowedFormats;
extern const char* const kAllowedCodecs;

// Whether one of `names`, separated by commas, is in `list`.
bool is_allowed(const char* names, const char* list);

// Bounds each piece of memory that libav takes, and turns off its messages on stderr: hark reports
// errors itself. A recording of 100 hours needs an index of 430 MB.
void prepare_libav();

}  // namespace hark
