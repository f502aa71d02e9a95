#include "core/cli/version.h"

#include "core/cli/commit.h"
#include "core/error.h"

namespace hark {

std::string version_text(const std::string& tool, const std::string& devices,
                         const std::string& types) {
    std::string text =
        concat(tool, " (hark) ", kVersion, "\ncommit: ", kCommit, "\ndevices: ", devices, "\n");
    if (!types.empty()) text += concat("types: ", types, "\n");
    return text;
}

}  // namespace hark
