#include "support/background.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <stdexcept>

namespace hark::test {
namespace {

// Appends what comes; false at the end.
bool read_more(int fd, std::string& text) {
    char bytes[4096];
    ssize_t n = 0;
    while ((n = ::read(fd, bytes, sizeof bytes)) < 0 && errno == EINTR) continue;
    if (n > 0) text.append(bytes, static_cast<size_t>(n));
    return n > 0;
}

// The rest of the whole line that begins with `begin`; false if there is none yet.
bool find_line(const std::string& text, const std::string& begin, std::string& rest) {
    for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
        const std::string line = text.substr(at, end - at);
        if (!line.starts_with(begin)) continue;
        rest = line.substr(begin.size());
        return true;
    }
    return false;
}

std::vector<std::string> command_of(const std::string& tool,
                                    const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {std::string(HARK_BIN_DIR) + "/" + tool};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
}

}  // namespace

BackgroundTool::BackgroundTool(const std::string& tool, const std::vector<std::string>& arguments,
                               const std::string& awaited)
    : BackgroundTool(command_of(tool, arguments), awaited) {}

BackgroundTool::BackgroundTool(const std::vector<std::string>& command,
                               const std::string& awaited) {
    int err[2];
    if (::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("fork failed");
    if (child_ == 0) {
        const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        ::dup2(nothing, 0);
        ::dup2(nothing, 1);
        ::dup2(err[1], 2);
        std::vector<char*> argv;
        for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ::close(err[1]);
    stderr_ = err[0];
    while (!find_line(err_, awaited, said_))
        if (!read_more(stderr_, err_)) throw std::runtime_error(command[0] + " has ended: " + err_);
    reader_ = std::thread([this] {
        while (read_more(stderr_, err_)) continue;
    });
}

BackgroundTool::~BackgroundTool() {
    if (child_ > 0) {
        ::kill(child_, SIGKILL);
        const int status = wait();
        if (status != 0 && status != -SIGKILL)
            std::fprintf(stderr, "a tool ended by itself, with %d:\n%s\n", status, err_.c_str());
    }
    ::close(stderr_);
}

void BackgroundTool::signal(int number) const { ::kill(child_, number); }

int BackgroundTool::wait() {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
    child_ = -1;
    reader_.join();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace hark::test
