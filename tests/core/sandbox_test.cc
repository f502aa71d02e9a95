// Each case enters the sandbox in a child, which writes what it then could do.
#include "core/sandbox/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <functional>
#include <thread>

#include "core/error.h"
#include "core/files/files.h"
#include "core/sandbox/sanitized.h"
#include "support/expect.h"
#include "support/landlock.h"
#include "support/process.h"

namespace hark {
namespace {

using test::expect_contains;
using test::has_landlock;
using test::kCreateLandlock;

// What `action` writes to stderr in a child, and what a failure says.
std::string in_child(const std::function<void()>& action) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], STDERR_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
        try {
            action();
        } catch (const Error& failure) {
            std::fprintf(stderr, "%s\n", failure.what());
        }
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string said;
    char piece[4096];
    for (ssize_t n; (n = ::read(ends[0], piece, sizeof piece)) > 0;)
        said.append(piece, static_cast<size_t>(n));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    return said;
}

void enter(const char* mode, const std::vector<std::string>& readable) {
    Console console("test");
    SandboxOptions{mode}.enter(readable, console);
}

// "NAME=ok ", or with the error's number.
void report(const char* name, long result) {
    if (result >= 0)
        std::fprintf(stderr, "%s=ok ", name);
    else
        std::fprintf(stderr, "%s=%d ", name, errno);
}

std::string refused(const std::string& name, int why) {
    return name + "=" + std::to_string(why) + " ";
}

// A listening socket of this machine alone, and its address.
int listen_somewhere(sockaddr_in& address) {
    address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(fd, 1), 0);
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
    return fd;
}

TEST(Sandbox, OpensTheNamedFilesAlone) {
    if (!has_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
    test::TemporaryDirectory directory;
    const std::string folder = directory.path(), named = folder + "/a", other = folder + "/b";
    test::write_text(named, "0123");
    test::write_text(other, "4567");
    const std::string said = in_child([&] {
        enter("require", {named, folder + "/none"});
        report("named", ::open(named.c_str(), O_RDONLY));
        report("writing", ::open(named.c_str(), O_WRONLY));
        report("other", ::open(other.c_str(), O_RDONLY));
        report("none", ::open((folder + "/none").c_str(), O_RDONLY));
        report("passwd", ::open("/etc/passwd", O_RDONLY));
        report("list", ::open(folder.c_str(), O_RDONLY | O_DIRECTORY));
        report("new", ::open((folder + "/new").c_str(), O_WRONLY | O_CREAT, 0600));
        report("unlink", ::unlink(other.c_str()));
        report("rename", ::rename(other.c_str(), named.c_str()));
        report("chmod", ::chmod(other.c_str(), 0777));
        report("truncate", ::truncate(other.c_str(), 0));
    });
    EXPECT_EQ(said, "named=ok " + refused("writing", EACCES) + refused("other", EACCES) +
                        refused("none", ENOENT) + refused("passwd", EACCES) +
                        refused("list", EACCES) + refused("new", EACCES) +
                        refused("unlink", EPERM) + refused("rename", EPERM) +
                        refused("chmod", EPERM) + refused("truncate", EPERM));
    EXPECT_EQ(test::read_text(other), "4567");
}

TEST(Sandbox, RefusesTheNetworkProgramsAndProcesses) {
    sockaddr_in address;
    const int listener = listen_somewhere(address);
    const int before = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);  // inherited
    const std::string said = in_child([&] {
        char program[] = "/bin/true";
        char* const arguments[] = {program, nullptr};
        char letter = 'x';
        rlimit limit;
        enter("on", {});
        std::fputs("\n", stderr);  // after a warning, if there is one
        report("socket", ::socket(AF_INET, SOCK_STREAM, 0));
        report("unix", ::socket(AF_UNIX, SOCK_STREAM, 0));
        report("connect", ::connect(before, reinterpret_cast<sockaddr*>(&address), sizeof address));
        report("exec", ::execv(program, arguments));
        report("kill", ::kill(::getppid(), 0));
        report("tgkill", ::syscall(__NR_tgkill, ::getppid(), ::getppid(), 0));
        report("prlimit", ::prlimit(::getppid(), RLIMIT_NOFILE, nullptr, &limit));
        report("priority", ::setpriority(PRIO_PROCESS, static_cast<id_t>(::getppid()), 19));
        report("type", ::ioctl(STDERR_FILENO, TIOCSTI, &letter));
        report("unshare", ::unshare(CLONE_NEWUSER));
        if (kSanitized) return;
        report("fork", ::fork());
        report("ptrace", ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr));
    });
    std::string expected;
    for (const char* const name : {"socket", "unix", "connect", "exec", "kill", "tgkill", "prlimit",
                                   "priority", "type", "unshare"})
        expected += refused(name, EPERM);
    if (!kSanitized) expected += refused("fork", EPERM) + refused("ptrace", EPERM);
    EXPECT_EQ(said.substr(said.rfind('\n') + 1), expected);
    ::close(listener);
    ::close(before);
}

TEST(Sandbox, LeavesThreadsMemoryAndAReservedFile) {
    const std::string said = in_child([] {
        reserve_unlinked_file();
        enter("on", {});
        std::fputs("\n", stderr);
        std::string text;
        std::thread([&] { text.assign(1 << 20, 'x'); }).join();
        const int file = make_unlinked_file();
        report("thread", text.size() == 1 << 20 ? 0 : -1);
        report("write", ::write(file, text.data(), text.size()));
        if (has_landlock()) make_unlinked_file();
    });
    expect_contains(said, "thread=ok write=ok ");
    if (has_landlock())
        expect_contains(said, "/hark.XXXXXX: cannot make a temporary file: Permission denied");
}

TEST(Sandbox, LeavesItsOwnSignalsAndLimits) {
    const std::string said = in_child([] {
        enter("on", {});
        std::fputs("\n", stderr);
        rlimit limit;
        report("limit", ::getrlimit(RLIMIT_NOFILE, &limit));
        report("own", ::prlimit(::getpid(), RLIMIT_NOFILE, nullptr, &limit));
        report("raise", ::raise(0));
        std::thread([] {  // libgomp binds a thread of its own so
            cpu_set_t cores;
            const auto id = static_cast<pid_t>(::syscall(__NR_gettid));
            report("cores", ::sched_getaffinity(id, sizeof cores, &cores));
            report("bind", ::sched_setaffinity(id, sizeof cores, &cores));
        })
            .join();
    });
    EXPECT_EQ(said.substr(said.rfind('\n') + 1), "limit=ok own=ok raise=ok cores=ok bind=ok ");
}

TEST(Sandbox, OffRestrictsNothing) {
    const std::string said = in_child([] {
        enter("off", {});
        report("passwd", ::open("/etc/passwd", O_RDONLY));
        report("socket", ::socket(AF_UNIX, SOCK_STREAM, 0));
    });
    EXPECT_EQ(said, "passwd=ok socket=ok ");
}

// Answers one system call as a kernel that does not know it.
void forget(long call) {
    sock_filter instructions[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<uint32_t>(call)},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const sock_fprog program = {4, instructions};
    ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(Sandbox, SaysWhatTheKernelLacks) {
    const auto try_without = [](long call, const char* mode) {
        return in_child([&] {
            forget(call);
            enter(mode, {});
            report("tgkill", ::syscall(__NR_tgkill, ::getppid(), ::getppid(), 0));
            report("socket", ::socket(AF_UNIX, SOCK_STREAM, 0));
            report("passwd", ::open("/etc/passwd", O_RDONLY));
        });
    };
    // The other half is there all the same.
    std::string said = try_without(kCreateLandlock, "on");
    expect_contains(said,
                    "test: the sandbox is incomplete: this kernel has no Landlock (Function "
                    "not implemented), so every file of the user can be read; ");
    expect_contains(said, refused("tgkill", EPERM) + refused("socket", EPERM) + "passwd=ok");
    if (has_landlock()) {
        said = try_without(__NR_seccomp, "on");
        expect_contains(said, "the sandbox is incomplete: seccomp cannot filter system calls: ");
        expect_contains(said, "socket=ok " + refused("passwd", EACCES));
    }
    said = try_without(kCreateLandlock, "require");
    EXPECT_EQ(said.find("socket="), std::string::npos) << said;
    expect_contains(said, "--sandbox require: this kernel has no Landlock (");
}

TEST(Sandbox, TakesLessThanTwoMilliseconds) {
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
        const std::string said = in_child([] {
            const auto began = std::chrono::steady_clock::now();
            enter("on", {"/etc/passwd"});
            const std::chrono::duration<double, std::milli> took =
                std::chrono::steady_clock::now() - began;
            std::fprintf(stderr, "\n%f", took.count());
        });
        best = std::min(best, std::stod(said.substr(said.rfind('\n') + 1)));
    }
    EXPECT_LT(best, 2);
    RecordProperty("milliseconds", std::to_string(best));
}

}  // namespace
}  // namespace hark
