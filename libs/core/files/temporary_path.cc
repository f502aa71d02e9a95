#include "core/files/temporary_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "core/clean_up.h"
#include "core/error.h"
#include "core/spin_lock.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 200;  // of the target's name: a name has at most 255
constexpr int kAttempts = 100;

// What a signal has to remove, in the order of creation. A thread that holds the lock has all
// signals blocked, so no handler waits for the thread that it interrupts.
struct Paths {
    std::atomic_flag locked;
    std::vector<std::string> names;
};

// Lives as long as the process: a handler may run at any time.
Paths& paths() {
    static auto* const only = new Paths;
    return *only;
}

// The list stays locked: no file is begun from here on.
void remove_temporary_paths() {
    Paths& all = paths();
    while (all.locked.test_and_set(std::memory_order_acquire)) continue;
    for (auto name = all.names.rbegin(); name != all.names.rend(); ++name)
        if (::unlink(name->c_str()) != 0) ::rmdir(name->c_str());
}

class BlockedSignals {
  public:
    BlockedSignals() {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;

  private:
    sigset_t before_;
};

std::string hidden_name(const fs::path& target) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
    static thread_local std::random_device random;
    std::string suffix;
    for (int i = 0; i < 6; ++i) suffix += kLetters[random() % kLetters.size()];
    const std::string name = target.filename().string().substr(0, kMaxNameBytes);
    return (target.parent_path() / concat(".", name, ".", suffix)).string();
}

void flush_directory(const std::string& name) {
    const int fd = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool flushed = fd >= 0 && ::fsync(fd) == 0;
    const int why = errno;
    if (fd >= 0) ::close(fd);
    require(flushed, name, ": cannot flush to the disk: ", std::strerror(why));
}

fs::path without_final_slash(const fs::path& path) {
    return path.has_filename() ? path : path.parent_path();
}

}  // namespace

TemporaryPath::TemporaryPath(fs::path target, const std::function<bool(const std::string&)>& create)
    : target_(without_final_slash(target).string()) {
    paths();  // before a handler needs it
    add_clean_up(remove_temporary_paths);
    for (int attempt = 1;; ++attempt) {
        name_ = hidden_name(target_);
        const BlockedSignals blocked;
        const SpinLock lock(paths().locked);  // another thread's signal sees the file in the list
        if (create(name_)) {
            paths().names.push_back(name_);
            return;
        }
        require(errno == EEXIST && attempt < kAttempts, target_,
                ": cannot write next to it: ", std::strerror(errno));
    }
}

TemporaryPath::~TemporaryPath() {
    std::error_code ignored;
    fs::remove_all(name_, ignored);  // not there once it is committed
    const BlockedSignals blocked;
    const SpinLock lock(paths().locked);
    std::erase_if(paths().names, [&](const std::string& name) {
        return name == name_ || name.starts_with(name_ + "/");
    });
}

void TemporaryPath::commit() {
    const BlockedSignals blocked;
    const bool renamed = ::rename(name_.c_str(), target_.c_str()) == 0;
    require(renamed, target_,
            ": cannot rename what was written next to it: ", std::strerror(errno));
    const SpinLock lock(paths().locked);
    std::vector<std::string>& names = paths().names;
    // A file in a folder that is temporary itself is removed with it.
    const bool inside =
        std::count(names.begin(), names.end(), fs::path(target_).parent_path().string()) > 0;
    if (inside)
        std::replace(names.begin(), names.end(), name_, target_);
    else
        std::erase(names, name_);
}

AtomicDirectory::AtomicDirectory(const fs::path& target)
    : temporary_(target, [](const std::string& name) { return ::mkdir(name.c_str(), 0777) == 0; }) {
}

void AtomicDirectory::commit() {
    flush_directory(temporary_.name());
    temporary_.commit();
}

}  // namespace hark
