#include "core/files/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include "core/clean_up.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/spin_lock.h"

namespace hark {
namespace {

constexpr const char* kShorter = "became shorter while it was read";

// The handler of SIGBUS reads it. The thread that runs the handler was reading a mapped file, so it
// does not hold the lock.
struct Mappings {
    std::atomic_flag locked;
    std::set<const MappedFile*> files;
};

// Lives as long as the process: a handler may run at any time.
Mappings& mappings() {
    static auto* const only = new Mappings;
    return *only;
}

void on_unreadable_page(int, siginfo_t* info, void*) {
    const auto* at = static_cast<const std::byte*>(info->si_addr);
    Mappings& all = mappings();
    {
        const SpinLock lock(all.locked);
        for (const MappedFile* file : all.files) {
            if (at < file->data() || at >= file->data() + file->size()) continue;
            clean_up();
            const std::string& line = file->shorter_line();
            (void)!::write(STDERR_FILENO, line.data(), line.size());
            ::_exit(1);
        }
    }
    std::signal(SIGBUS, SIG_DFL);  // no file of ours: the same instruction ends the process
}

void handle_unreadable_pages() {
    static const int installed = [] {
        mappings();
        struct sigaction action = {};
        action.sa_sigaction = on_unreadable_page;
        action.sa_flags = SA_SIGINFO;
        sigfillset(&action.sa_mask);
        return ::sigaction(SIGBUS, &action, nullptr);
    }();
    require(installed == 0, "cannot handle SIGBUS");
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path)
    : name_(path.string()),
      shorter_line_(concat(program_invocation_short_name, ": ", name_, ": ", kShorter, "\n")) {
    handle_unreadable_pages();
    const OpenFile file(path);
    require(file.bytes() > 0, name_, ": the file is empty");
    void* mapped = ::mmap(nullptr, file.bytes(), PROT_READ, MAP_PRIVATE, file.fd(), 0);
    require(mapped != MAP_FAILED, name_, ": cannot map ", file.bytes(),
            " bytes: ", std::strerror(errno));
    data_ = static_cast<std::byte*>(mapped);
    size_ = file.bytes();
    struct stat info {};
    ::fstat(file.fd(), &info);
    device_ = info.st_dev;
    inode_ = info.st_ino;
    const SpinLock lock(mappings().locked);
    mappings().files.insert(this);
}

MappedFile::~MappedFile() {
    {
        const SpinLock lock(mappings().locked);
        mappings().files.erase(this);
    }
    ::munmap(data_, size_);
}

void MappedFile::check() const {
    struct stat now {};
    const bool same =
        ::stat(name_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
    require(!same || static_cast<uint64_t>(now.st_size) >= size_, name_, ": ", kShorter);
}

void MappedFile::forget(size_t offset, size_t bytes) const {
    check();
    forget_pages(data_ + offset, bytes);
}

void forget_pages(const void* from, size_t bytes) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto at = reinterpret_cast<uintptr_t>(from);
    const uintptr_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace hark
