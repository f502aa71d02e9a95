// The names of a recording's files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "whisper/output/formats.h"

namespace hark::whisper {

// Throws UsageError unless `name_template` has known fields alone and stays in the folder: it may
// have {name}, the source's file name; {stem}, the same without ending; {folder}, where the source
// is; {channel}; and {n}, the recording's number in the run.
void check_name_template(const std::string& name_template);

class OutputNames {
  public:
    // `endings` of the files that each recording has.
    OutputNames(std::string name_template, std::vector<std::string> endings);

    struct Name {
        std::string path;      // relative to the output folder, without ending
        std::string taken_by;  // the source whose files have the first choice of name; or ""
    };
    // Names are valid UTF-8, short enough for a file system, and no two recordings of a run share a
    // file. A channel other than the first adds its number, unless the template has {channel}.
    // Throws Error if the path would leave the output folder.
    Name add(const RecordingInfo& info);

  private:
    // The source that already has one of the files of this name, or null.
    const std::string* owner(const std::string& path) const;

    std::string template_;
    std::vector<std::string> endings_;
    size_t most_bytes_;  // of a name without ending
    int64_t count_ = 0;
    std::map<std::string, std::string> sources_;  // by the path of a file
};

}  // namespace hark::whisper
