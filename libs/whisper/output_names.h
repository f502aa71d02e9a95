// What the files of a recording are called.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "whisper/formats.h"

namespace hark::whisper {

class OutputNames {
  public:
    // `longest_ending`: bytes of the longest of the endings that the names are given.
    explicit OutputNames(size_t longest_ending);

    // The name of the source without folder and ending, valid UTF-8, short enough for a file
    // system, and unlike every other name of this run. A channel other than the first adds its
    // number.
    std::string add(const RecordingInfo& info);

  private:
    size_t most_;  // bytes of a name
    std::set<std::string> taken_;
};

}  // namespace hark::whisper
