#include "core/sandbox/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/error.h"
#include "core/sandbox/sanitized.h"

namespace hark {
namespace {

// The kernel's interface, which the headers of older distributions lack: landlock(7).
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr unsigned kGetVersion = 1;
constexpr int kBelowPath = 1;  // the rule's type
constexpr uint64_t kReadFile = 1 << 2, kReadDirectory = 1 << 3;

struct Ruleset {
    uint64_t files;    // rights that need a rule
    uint64_t network;  // binding and connecting TCP
    uint64_t scoped;   // abstract Unix sockets, signals
};

struct [[gnu::packed]] PathRule {
    uint64_t allowed;
    int32_t parent;
};

// All rights that version `abi` of the interface knows.
Ruleset all_rights(long abi) {
    int files = 13;
    if (abi >= 2) files = 14;  // links between folders
    if (abi >= 3) files = 15;  // truncation
    if (abi >= 5) files = 16;  // ioctl of devices
    return {(uint64_t{1} << files) - 1, abi >= 4 ? 3u : 0u, abi >= 6 ? 3u : 0u};
}

// Some kernels state a version whose parts they refuse: the next older one is tried.
int create_ruleset(long abi) {
    for (; abi >= 1; --abi) {
        const Ruleset rights = all_rights(abi);
        const long made = ::syscall(kCreateRuleset, &rights, sizeof rights, 0u);
        if (made >= 0) return static_cast<int>(made);
    }
    return -1;
}

bool allow(int ruleset, const std::string& path) {
    const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (fd < 0) return true;  // the open that follows says why
    struct stat info {};
    const bool folder = ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    // A recording that is a folder is refused by its reader.
    PathRule rule = {folder ? kReadDirectory : kReadFile, fd};
    if (kSanitized && path == kSanitizersFolder) rule.allowed = kReadFile | kReadDirectory;
    const bool added = ::syscall(kAddRule, ruleset, kBelowPath, &rule, 0u) == 0;
    const int why = errno;
    ::close(fd);
    return added || why == EBADFD || why == EBADF;  // a pipe's, which needs no rule
}

std::string landlock_failure(const char* what) {
    return concat("Landlock cannot ", what, ": ", std::strerror(errno),
                  "; every file of the user can be read");
}

}  // namespace

long landlock_version() {
    const long version = ::syscall(kCreateRuleset, nullptr, size_t{0}, kGetVersion);
    return version < 1 ? 0 : version;
}

std::string restrict_files(const std::vector<std::string>& readable) {
    const long abi = landlock_version();
    if (abi == 0)
        return concat("this kernel has no Landlock (", std::strerror(errno),
                      "), so every file of the user can be read");
    const int ruleset = create_ruleset(abi);
    if (ruleset < 0) return landlock_failure("make a list of rules");
    std::string lacking;
    for (const std::string& path : readable)
        if (!allow(ruleset, path)) lacking = landlock_failure("add a file");
    if (kSanitized && !allow(ruleset, kSanitizersFolder)) lacking = landlock_failure("add /proc");
    if (lacking.empty() && ::syscall(kRestrictSelf, ruleset, 0u) != 0)
        lacking = landlock_failure("begin");
    ::close(ruleset);
    return lacking;
}

}  // namespace hark
