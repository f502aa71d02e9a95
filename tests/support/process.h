// Runs the real binaries, as a shell would.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hark::test {

struct ProcessResult {
    int exit_code = -1;    // or -signal where a signal ended it
    std::string out, err;  // what it wrote to stdout and stderr
};

// Runs a tool of build/bin with `input` on stdin (through a pipe, never a terminal).
ProcessResult run_tool(const std::string& tool, const std::vector<std::string>& arguments,
                       const std::string& input = "");

// Runs a shell command with build/bin first on the PATH.
ProcessResult run_shell(const std::string& command, const std::string& input = "");

std::filesystem::path source_dir();
std::filesystem::path samples_dir();

// A new empty directory, removed with everything in it when it dies.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace hark::test
