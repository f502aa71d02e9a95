#include "operations/doctor/apart.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "core/error.h"

namespace hark::doctor {
namespace {

using Clock = std::chrono::steady_clock;

void write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t wrote = ::write(fd, text.data(), text.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return;  // the reader has given up
        text.remove_prefix(static_cast<size_t>(wrote));
    }
}

// The child: what the work finds, a line each, and an error as the last one.
[[noreturn]] void work_in_child(const std::function<void(const Say&)>& work, int fd) {
    std::signal(SIGPIPE, SIG_IGN);
    // A library's own words are no part of the report.
    const int nowhere = ::open("/dev/null", O_WRONLY);
    if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO), ::dup2(nowhere, STDERR_FILENO);
    const auto write_line = [&](const nlohmann::ordered_json& line) {
        write_all(fd, json_text(line) + "\n");
    };
    try {
        work([&](const Finding& finding) { write_line(to_json(finding)); });
        write_line({{"end", ""}});
    } catch (const std::exception& why) {
        write_line({{"end", concat("failed: ", failure_text(why))}});
    }
    ::_exit(0);
}

// Reads until the end of the pipe or the deadline; returns whether the end came first.
bool read_until(int fd, Clock::time_point deadline, std::string& text) {
    char piece[4096];
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return false;
        pollfd wanted = {fd, POLLIN, 0};
        const int ready = ::poll(&wanted, 1, static_cast<int>(left.count()));
        if (ready < 0 && errno != EINTR) fail("poll: ", std::strerror(errno));
        if (ready <= 0) continue;
        const ssize_t got = ::read(fd, piece, sizeof piece);
        if (got == 0) return true;
        if (got > 0) text.append(piece, static_cast<size_t>(got));
    }
}

// The status of a child that ends, if it is there within `seconds`: the kernel may not let go of
// one that waits for a device.
int status_of(pid_t child, double seconds) {
    int status = 0;
    for (double waited = 0; waited < seconds && ::waitpid(child, &status, WNOHANG) == 0;
         waited += 0.002)
        ::usleep(2000);
    return status;
}

}  // namespace

Apart run_apart(const std::function<void(const Say& say)>& work, double seconds) {
    int ends[2];
    require(::pipe2(ends, O_CLOEXEC) == 0, "pipe: ", std::strerror(errno));
    const pid_t child = ::fork();
    require(child >= 0, "fork: ", std::strerror(errno));
    if (child == 0) {
        ::close(ends[0]);
        work_in_child(work, ends[1]);
    }
    ::close(ends[1]);
    std::string text;
    const auto limit =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    const bool ended = read_until(ends[0], Clock::now() + limit, text);
    ::close(ends[0]);
    if (!ended) ::kill(child, SIGKILL);
    const int status = status_of(child, ended ? 2 : 0.1);
    Apart apart{.timed_out = !ended};
    apart.end = !ended ? concat("did not end within ", figure(seconds), " s")
                : WIFSIGNALED(status)
                    ? concat("was ended by a signal: ", ::strsignal(WTERMSIG(status)))
                    : "ended without a result";
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
        const auto line = parse_ordered_json(text.substr(begin, end - begin), "a finding");
        if (line.is_object() && line.contains("end"))
            apart.end = line["end"].get<std::string>();
        else
            apart.findings.push_back(finding_of(line));
    }
    return apart;
}

}  // namespace hark::doctor
