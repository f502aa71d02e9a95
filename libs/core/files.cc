#include "core/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/io.h"

namespace hark {
namespace {

constexpr const char* kTemporary = "/var/tmp/hark.XXXXXX";

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
    const int fd = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
    require(fd >= 0, name_, ": cannot open: ", std::strerror(errno));
    struct stat info {};
    const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    if (regular && info.st_size > 0) {
        size_ = static_cast<size_t>(info.st_size);
        void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
        if (mapped != MAP_FAILED) data_ = static_cast<std::byte*>(mapped);
    }
    ::close(fd);
    require(regular, name_, ": expected a regular file");
    require(size_ > 0, name_, ": the file is empty");
    require(data_ != nullptr, name_, ": cannot map ", size_, " bytes: ", std::strerror(errno));
}

MappedFile::~MappedFile() {
    if (data_) ::munmap(data_, size_);
}

void MappedFile::forget(size_t offset, size_t bytes) const {
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t begin = (offset + page - 1) / page * page;
    const size_t end = (offset + bytes) / page * page;
    if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

std::string read_file(const std::filesystem::path& path, size_t limit) {
    const std::string name = path.string();
    const int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    require(fd >= 0, name, ": cannot open: ", std::strerror(errno));
    std::string text;
    std::vector<char> piece(size_t{1} << 16);
    try {
        ByteReader reader(fd, name);
        while (size_t got = reader.read_some(piece.data(), piece.size())) {
            text.append(piece.data(), got);
            require(text.size() <= limit, name, ": larger than the ", limit, " bytes expected");
        }
    } catch (...) {
        ::close(fd);
        throw;
    }
    ::close(fd);
    return text;
}

std::string first_bytes(const std::filesystem::path& path, size_t most) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(fd >= 0, path.string(), ": cannot open: ", std::strerror(errno));
    std::string bytes(most, '\0');
    const ssize_t got = ::pread(fd, bytes.data(), most, 0);
    const int failed = errno;
    ::close(fd);
    require(got >= 0 || failed == ESPIPE, path.string(), ": cannot read: ", std::strerror(failed));
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return bytes;
}

std::string as_hex(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text = "the bytes";
    for (const unsigned char byte : bytes) text += {' ', kDigits[byte >> 4], kDigits[byte & 15]};
    return bytes.empty() ? "nothing" : text;
}

std::string hidden_beside(const std::filesystem::path& target) {
    return (target.parent_path() / concat(".", target.filename().string(), ".XXXXXX")).string();
}

AtomicFile::AtomicFile(const std::filesystem::path& target) : target_(target.string()) {
    // A device or a pipe is written to as it is; what a link points at gets the file.
    std::error_code failed;
    const auto type = std::filesystem::status(target, failed).type();
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(target, failed)))
        target_ = std::filesystem::weakly_canonical(target).string();
    if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::fifo ||
        type == std::filesystem::file_type::block) {
        fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
        require(fd_ >= 0, target_, ": cannot open: ", std::strerror(errno));
        return;
    }
    temporary_ = hidden_beside(target_);
    fd_ = ::mkstemp(temporary_.data());
    require(fd_ >= 0, target_, ": cannot write next to it: ", std::strerror(errno));
    // mkstemp makes it private; the finished file gets the permissions that open() would give.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(fd_, 0666 & ~mask);
}

AtomicFile::~AtomicFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view text) {
    ByteWriter writer(fd_, target_);
    writer.write(text);
    writer.flush();
}

void AtomicFile::commit() {
    if (temporary_.empty()) {
        ::close(fd_);
        fd_ = -1;
        return;
    }
    // errno is read after the call, which the order of a call's arguments would not promise.
    const bool flushed = ::fsync(fd_) == 0;
    require(flushed, target_, ": cannot flush to the disk: ", std::strerror(errno));
    const bool renamed = ::rename(temporary_.c_str(), target_.c_str()) == 0;
    require(renamed, target_, ": cannot rename the finished file: ", std::strerror(errno));
    ::close(fd_);
    fd_ = -1;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
    AtomicFile file(path);
    file.write(text);
    file.commit();
}

int make_unlinked_file() {
    std::string path = kTemporary;
    const int fd = ::mkstemp(path.data());
    require(fd >= 0, path, ": cannot make a temporary file: ", std::strerror(errno));
    ::unlink(path.c_str());
    return fd;
}

int spool_to_unlinked_file(int fd, std::string_view already_read) {
    const std::string path = kTemporary;
    const int spool = make_unlinked_file();
    try {
        ByteReader in(fd, "stdin");
        ByteWriter out(spool, path);
        out.write(already_read);
        std::vector<char> piece(size_t{1} << 20);
        while (size_t got = in.read_some(piece.data(), piece.size())) out.write(piece.data(), got);
        out.flush();
        require(::lseek(spool, 0, SEEK_SET) == 0, path, ": cannot seek");
    } catch (...) {
        ::close(spool);
        throw;
    }
    return spool;
}

}  // namespace hark
