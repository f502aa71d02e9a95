#include "core/files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "core/files/io.h"
#include "core/profile/profile.h"

namespace hark {
namespace {

constexpr const char* kTemporary = "/var/tmp/hark.XXXXXX";

const char* name_of_kind(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    return S_ISSOCK(mode) ? "a socket" : "a device";
}

std::string read_to_end(int fd, const std::string& name, size_t limit) {
    std::string text;
    std::vector<char> piece(size_t{1} << 16);
    ByteReader reader(fd, name);
    while (size_t got = reader.read_some(piece.data(), piece.size())) {
        text.append(piece.data(), got);
        require(text.size() <= limit, name, ": too large (expected at most ", limit, " bytes)");
    }
    return text;
}

// Returns a descriptor, or less than 0: a failure's errno, negated.
int try_unlinked_file() {
    std::string path = kTemporary;
    const int fd = ::mkostemp(path.data(), O_CLOEXEC);
    if (fd < 0) return -errno;
    ::unlink(path.c_str());
    return fd;
}

// What try_unlinked_file() gave before it was needed.
struct Reserve {
    std::mutex mutex;
    std::vector<int> files;
};

Reserve& unlinked_reserve() {
    static Reserve reserve;
    return reserve;
}

}  // namespace

OpenFile::OpenFile(const std::filesystem::path& path) {
    // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    require(fd_ >= 0, path.string(), ": cannot open: ", std::strerror(errno));
    struct stat info {};
    const bool regular = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
    if (!regular) ::close(fd_);
    require(regular, path.string(), ": not a regular file (got ", name_of_kind(info.st_mode), ")");
    bytes_ = static_cast<size_t>(info.st_size);
}

OpenFile::~OpenFile() { ::close(fd_); }

std::string read_file(const std::filesystem::path& path, size_t limit) {
    const OpenFile file(path);
    return read_to_end(file.fd(), path.string(), limit);
}

std::string read_file_or_pipe(const std::filesystem::path& path, size_t limit) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(fd >= 0, path.string(), ": cannot open: ", std::strerror(errno));
    try {
        std::string text = read_to_end(fd, path.string(), limit);
        ::close(fd);
        return text;
    } catch (...) {
        ::close(fd);
        throw;
    }
}

std::string first_bytes(const std::filesystem::path& path, size_t most) {
    const OpenFile file(path);
    std::string bytes(most, '\0');
    const ssize_t got = ::pread(file.fd(), bytes.data(), most, 0);
    require(got >= 0, path.string(), ": cannot read: ", std::strerror(errno));
    bytes.resize(static_cast<size_t>(got));
    return bytes;
}

std::string as_hex(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text = "the bytes";
    for (const unsigned char byte : bytes) text += {' ', kDigits[byte >> 4], kDigits[byte & 15]};
    return bytes.empty() ? "nothing" : text;
}

AtomicFile::AtomicFile(const std::filesystem::path& target) : target_(target.string()) {
    // A device or a pipe is written to as it is; what a link points at gets the file.
    std::error_code failed;
    const auto type = std::filesystem::status(target, failed).type();
    if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::fifo ||
        type == std::filesystem::file_type::block) {
        fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
        require(fd_ >= 0, target_, ": cannot open: ", std::strerror(errno));
        return;
    }
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(target, failed))) {
        target_ = std::filesystem::weakly_canonical(target, failed).string();
        require(!failed, target.string(), ": cannot follow this link: ", failed.message());
    }
    temporary_.emplace(target_, [this](const std::string& name) {
        fd_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        return fd_ >= 0;
    });
}

AtomicFile::~AtomicFile() {
    if (fd_ >= 0) ::close(fd_);
}

void AtomicFile::write(std::string_view text) {
    ByteWriter writer(fd_, target_);
    writer.write(text);
    writer.flush();
}

void AtomicFile::commit() {
    if (temporary_) {
        const ProfileSpan span("write");
        // A statement of its own: errno is read after the call.
        const bool flushed = ::fsync(fd_) == 0;
        require(flushed, target_, ": cannot flush to the disk: ", std::strerror(errno));
        temporary_->commit();
    }
    ::close(fd_);
    fd_ = -1;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
    AtomicFile file(path);
    file.write(text);
    file.commit();
}

int make_unlinked_file() {
    int made;
    {
        Reserve& reserve = unlinked_reserve();
        const std::lock_guard lock(reserve.mutex);
        if (reserve.files.empty()) {
            made = try_unlinked_file();
        } else {
            made = reserve.files.back();
            reserve.files.pop_back();
        }
    }
    require(made >= 0, kTemporary, ": cannot make a temporary file: ", std::strerror(-made));
    return made;
}

void reserve_unlinked_file() {
    Reserve& reserve = unlinked_reserve();
    const std::lock_guard lock(reserve.mutex);
    reserve.files.push_back(try_unlinked_file());
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
