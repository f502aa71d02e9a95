// The versions of the libraries that the tools have loaded, and the formats that libav reads.
#pragma once

#include <string>
#include <vector>

#include "operations/doctor/finding.h"

namespace hark::doctor {

struct LibraryReading {
    std::string name;           // "libavformat"
    std::string loaded, built;  // versions, "59.27.100": at run time, and of the headers
};

struct LibrariesReading {
    std::vector<LibraryReading> libraries;
    std::vector<std::string> missing;  // codecs that this libavcodec does not decode: "opus"
};
LibrariesReading read_libraries();
// libraries.versions, libraries.decoders
void judge_libraries(const LibrariesReading& reading, const Say& say);

}  // namespace hark::doctor
