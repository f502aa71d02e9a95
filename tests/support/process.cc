#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace hark::test {
namespace {

namespace fs = std::filesystem;

// Feeds stdin and empties stdout and stderr side by side, so that no full pipe can block.
void exchange(int in, const std::string& input, int out, int err, ProcessResult& result) {
    size_t sent = 0;
    if (input.empty()) ::close(in), in = -1;
    char piece[1 << 16];
    while (in >= 0 || out >= 0 || err >= 0) {
        pollfd fds[3] = {{in, POLLOUT, 0}, {out, POLLIN, 0}, {err, POLLIN, 0}};
        if (::poll(fds, 3, -1) < 0 && errno != EINTR) throw std::runtime_error("poll failed");
        if (in >= 0 && fds[0].revents) {
            const ssize_t put = ::write(in, input.data() + sent, input.size() - sent);
            if (put > 0) sent += static_cast<size_t>(put);
            if ((put < 0 && errno != EAGAIN) || sent == input.size()) ::close(in), in = -1;
        }
        int* ends[2] = {&out, &err};
        std::string* texts[2] = {&result.out, &result.err};
        for (int i = 0; i < 2; ++i) {
            if (*ends[i] < 0 || !fds[i + 1].revents) continue;
            const ssize_t got = ::read(*ends[i], piece, sizeof piece);
            if (got > 0) texts[i]->append(piece, static_cast<size_t>(got));
            if (got == 0) ::close(*ends[i]), *ends[i] = -1;
        }
    }
}

ProcessResult run(const std::vector<std::string>& command, const std::string& input) {
    ::signal(SIGPIPE, SIG_IGN);  // a tool that does not read its stdin must not end the test
    int in[2], out[2], err[2];
    if (::pipe2(in, O_CLOEXEC) || ::pipe2(out, O_CLOEXEC) || ::pipe2(err, O_CLOEXEC))
        throw std::runtime_error("pipe failed");
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
        ::dup2(in[0], 0);
        ::dup2(out[1], 1);
        ::dup2(err[1], 2);
        std::vector<char*> argv;
        for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    ::close(err[1]);
    ::fcntl(in[1], F_SETFL, O_NONBLOCK);
    ProcessResult result;
    exchange(in[1], input, out[0], err[0], result);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return result;
}

}  // namespace

ProcessResult run_tool(const std::string& tool, const std::vector<std::string>& arguments,
                       const std::string& input) {
    std::vector<std::string> command = {std::string(HARK_BIN_DIR) + "/" + tool};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command, input);
}

ProcessResult run_shell(const std::string& command, const std::string& input) {
    return run({"/bin/bash", "-c", "PATH=\"" HARK_BIN_DIR ":$PATH\"; " + command}, input);
}

int (*rank_main)(const std::string& argument) = nullptr;

std::string mpirun(int ranks, int seconds) {
    if (!*HARK_MPIEXEC) return "";
    return "LD_PRELOAD='" HARK_BUILD_DIR
           "/tests/libpatient-ranks.so' ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 "
           "timeout " +
           std::to_string(seconds) +
           " '" HARK_MPIEXEC
           "' --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n " +
           std::to_string(ranks) + " ";
}

bool has_command(const std::string& name) { return run_shell("command -v " + name).exit_code == 0; }

fs::path source_dir() { return HARK_SOURCE_DIR; }
fs::path build_dir() { return HARK_BUILD_DIR; }
fs::path samples_dir() { return source_dir() / "samples"; }

DetectedLanguages::DetectedLanguages() {
    if (const char* given = std::getenv("HARK_LANGUAGE")) given_ = given;
    ::unsetenv("HARK_LANGUAGE");
}

DetectedLanguages::~DetectedLanguages() {
    if (!given_.empty()) ::setenv("HARK_LANGUAGE", given_.c_str(), 1);
}

TemporaryDirectory::TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "hark-test.XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;  // an iterator over characters took most of the time of some tests
    text << file.rdbuf();
    return std::move(text).str();
}

void write_text(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

}  // namespace hark::test
