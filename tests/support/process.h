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

// Whether a shell finds this command.
bool has_command(const std::string& name);

// What this program does if it is started with --rank=ARGUMENT; set by the tests that do so.
extern int (*rank_main)(const std::string& argument);

// The start of a command line that runs a program as `ranks` processes; it ends itself after
// `seconds`; empty if this build has no MPI. A rank that waits for another leaves the processor to
// whoever has work. Open MPI unloads its components while memory of theirs
// is still held, so the search for leaks has no name by which it could pass over it: forked ranks
// search in the same code.
std::string mpirun(int ranks, int seconds);

std::filesystem::path source_dir();
std::filesystem::path build_dir();
std::filesystem::path samples_dir();

// Commands detect the language of each recording, although ctest gives one (hark_given_language).
class DetectedLanguages {
  public:
    DetectedLanguages();
    ~DetectedLanguages();

  private:
    std::string given_;  // empty: none
};

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
