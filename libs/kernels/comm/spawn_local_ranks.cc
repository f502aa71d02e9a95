#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/comm/socket_links.h"

namespace hark {
namespace {

// After one rank fails, the others have this time to report their own errors.
constexpr int kGraceSeconds = 3;

// A socket for each pair of ranks: [i][j] is rank i's end.
class SocketTable {
  public:
    explicit SocketTable(int size) : ends_(static_cast<size_t>(size)) {
        for (std::vector<int>& row : ends_) row.assign(ends_.size(), -1);
        for (size_t i = 0; i < ends_.size(); ++i)
            for (size_t j = i + 1; j < ends_.size(); ++j) {
                int pair[2];
                const int status = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
                require(status == 0, "cannot link ", size, " ranks: ", std::strerror(errno));
                ends_[i][j] = pair[0], ends_[j][i] = pair[1];
            }
    }
    ~SocketTable() { close(); }
    SocketTable(const SocketTable&) = delete;
    SocketTable& operator=(const SocketTable&) = delete;

    std::vector<int> take(int rank) {
        std::vector<int> row(ends_.size(), -1);
        row.swap(ends_[static_cast<size_t>(rank)]);
        return row;
    }
    void close() {
        for (std::vector<int>& row : ends_)
            for (int& socket : row)
                if (socket >= 0) ::close(std::exchange(socket, -1));
    }

  private:
    std::vector<std::vector<int>> ends_;
};

sigset_t watched_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    return set;
}

// The process that started the ranks, until they end.
class Watch {
  public:
    void add(pid_t pid) { children_.push_back({pid, std::nullopt, false}); }

    void until_ended() {
        const sigset_t signals = watched_signals();
        std::optional<time_t> end;
        while (reap() > 0) {
            if (!end && failed() != nullptr) end = ::time(nullptr) + kGraceSeconds;
            if (end && ::time(nullptr) >= *end) kill_all();
            const timespec second = {1, 0};
            siginfo_t info = {};
            const int signal = ::sigtimedwait(&signals, &info, &second);
            // A terminal signals all processes itself: a second signal would end rank 0 at once.
            const bool forward = signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL;
            if (forward && !children_[0].status) ::kill(children_[0].pid, signal);
        }
    }

    void kill_all() {
        for (Child& child : children_)
            if (!child.status) child.killed = ::kill(child.pid, SIGKILL) == 0;
    }

    // The signal that ended all ranks, or 0. The reader of rank 0's output has gone: the run's has.
    int signal_of_all() const {
        const int first = *children_[0].status;
        if (WIFSIGNALED(first) && WTERMSIG(first) == SIGPIPE) return SIGPIPE;
        const bool all = std::all_of(children_.begin(), children_.end(), [&](const Child& child) {
            return WIFSIGNALED(first) && !child.killed && child.status == first;
        });
        return all ? WTERMSIG(first) : 0;
    }

    // Throws RanksFailed that names the failed rank, if any: first one that a signal ended, then
    // the earliest. Other failures may be consequences of it.
    void check() const {
        const Child* child = failed();
        if (child == nullptr) return;
        const int status = *child->status;
        const auto rank = child - children_.data();
        if (WIFSIGNALED(status))
            throw RanksFailed(concat("rank ", rank, " (process ", child->pid,
                                     ") was ended by signal ", WTERMSIG(status), " (",
                                     ::strsignal(WTERMSIG(status)), "), and the run with it"),
                              false);
        require_usage(WEXITSTATUS(status) != 2, "rank ", rank, " has refused the command line");
        const bool alike = std::all_of(children_.begin(), children_.end(), [&](const Child& other) {
            return !other.killed && other.status == child->status;
        });
        throw RanksFailed(concat("rank ", rank, " has failed, and the run with it"), alike);
    }

  private:
    struct Child {
        pid_t pid;
        std::optional<int> status;
        bool killed;    // by this process
        int ended = 0;  // turn at which it was found to have ended
    };

    // Returns the number of ranks that still run.
    int reap() {
        int running = 0;
        ++turn_;
        for (Child& child : children_) {
            int status = 0;
            if (!child.status && ::waitpid(child.pid, &status, WNOHANG) == child.pid)
                child.status = status, child.ended = turn_;
            running += !child.status;
        }
        return running;
    }

    const Child* failed() const {
        const Child* found = nullptr;
        for (const Child& child : children_) {
            if (!child.status || *child.status == 0 || child.killed) continue;
            const auto order = [](const Child& c) {
                return std::pair(!WIFSIGNALED(*c.status), c.ended);
            };
            if (found == nullptr || order(child) < order(*found)) found = &child;
        }
        return found;
    }

    std::vector<Child> children_;
    int turn_ = 0;
};

}  // namespace

std::unique_ptr<Transport> spawn_local_ranks(int size) {
    require(size > 0, "expected 1 rank or more, found ", size);
    SocketTable sockets(size);
    const sigset_t signals = watched_signals();
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &signals, &before);
    std::signal(SIGCHLD, SIG_DFL);  // if it were ignored, the children's statuses would be lost
    const pid_t parent = ::getpid();
    Watch watch;
    for (int rank = 0; rank < size; ++rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // kills the ranks if their watcher dies
            if (::getppid() != parent) ::_exit(1);
            ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
            return socket_links(rank, sockets.take(rank), rank);
        }
        const int reason = errno;
        if (child > 0) {
            watch.add(child);
            continue;
        }
        watch.kill_all();
        watch.until_ended();
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        fail("cannot start rank ", rank, ": ", std::strerror(reason));
    }
    sockets.close();  // the ranks hold the other ends and see when one of them ends
    watch.until_ended();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (const int signal = watch.signal_of_all()) {
        sigset_t ending;
        sigemptyset(&ending);
        sigaddset(&ending, signal);
        std::signal(signal, SIG_DFL);
        ::pthread_sigmask(SIG_UNBLOCK, &ending, nullptr);
        std::raise(signal);
    }
    watch.check();
    return nullptr;
}

}  // namespace hark
