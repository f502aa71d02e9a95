// The versions of the libraries that the tools have loaded, and the formats that libav reads.
#pragma once

#include <string>
#include <vector>

#include "audio/libav/libav.h"
#include "operations/doctor/finding.h"

namespace hark::doctor {

struct LibrariesReading {
    std::vector<LibraryVersion> libraries;
    std::vector<std::string> missing;  // codecs that this libavcodec does not decode: "opus"
    std::string no_libav;              // why it cannot be loaded; empty if it is
};
LibrariesReading read_libraries();
// libraries.versions, libraries.decoders
void judge_libraries(const LibrariesReading& reading, const Say& say);

}  // namespace hark::doctor
