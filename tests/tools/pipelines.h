// What the tests of the commands of pipelines/ share: folders of recordings, and the scripts.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "support/expect.h"
#include "support/process.h"

namespace hark::test {

inline const std::string kDemoFlags = " --model demo --threads 1";

namespace fs = std::filesystem;

inline constexpr const char* kSea = "He lived with his mother in a small house by the sea.";
inline constexpr const char* kKey = "key to the door";

// A folder of recordings that is removed in the end.
class Folder {
  public:
    // Copies a recording of samples/.
    void copy(const std::string& sample, const std::string& name) {
        fs::create_directories((path() / name).parent_path());
        fs::copy_file(samples_dir() / sample, path() / name);
    }
    const fs::path& path() const { return directory_.path(); }
    std::string text(const std::string& name) const { return read_text(path() / name); }
    // The names of everything in it, hidden files included.
    std::set<std::string> names() const {
        std::set<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator(path()))
            if (entry.is_regular_file()) names.insert(fs::relative(entry, path()).string());
        return names;
    }

  private:
    TemporaryDirectory directory_;
};

// Put before a command: takes from root its right to read everything.
inline const std::string kWithoutRights =
    "$([ \"$(id -u)\" != 0 ] || echo setpriv --bounding-set=-dac_override,-dac_read_search) ";

inline ProcessResult script(const std::string& name, const std::string& arguments) {
    return run_shell("'" + (source_dir() / "pipelines" / name).string() + "' " + arguments);
}

}  // namespace hark::test
