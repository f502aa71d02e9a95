#include "audio/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/files/files.h"

namespace hark {

Input::Input(const std::string& path)
    : name_(path == "-" ? "stdin" : path), reader_(STDIN_FILENO, name_) {
    fd_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(fd_ >= 0, name_, ": cannot open: ", std::strerror(errno),
            path.find("://") == path.npos ? "" : "; type: curl -sL URL | audio-decode -");
    owned_ = path != "-";
    examine();
}

Input::Input(int fd, std::string name) : name_(std::move(name)), fd_(fd), reader_(fd, name_) {
    examine();
}

Input::~Input() {
    if (owned_) ::close(fd_);
}

void Input::examine() {
    struct stat info{};
    seekable_ = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode);
    if (seekable_) base_ = std::max<int64_t>(0, ::lseek(fd_, 0, SEEK_CUR));
    reader_ = ByteReader(fd_, name_);
}

int64_t Input::size() const {
    struct stat info{};
    require(seekable_ && ::fstat(fd_, &info) == 0, name_, ": the size is not known");
    return std::max<int64_t>(0, info.st_size - base_);
}

std::string_view Input::peek(size_t bytes) {
    const std::string_view ahead = reader_.peek(bytes);
    peeked_ = std::max(peeked_, ahead.size());
    return ahead;
}

void Input::require_content(const char* expected) {
    if (!peek(1).empty()) return;
    if (seekable_ || owned_) fail(name_, ": the file is empty (expected ", expected, ")");
    fail(name_, ": no data (expected ", expected, "); the stage before has failed");
}

size_t Input::read_some(void* to, size_t bytes) {
    const size_t got = reader_.read_some(to, bytes);
    position_ += static_cast<int64_t>(got);
    return got;
}

size_t Input::read(void* to, size_t bytes) {
    const size_t got = reader_.read(to, bytes);
    position_ += static_cast<int64_t>(got);
    return got;
}

void Input::seek(int64_t position) {
    require(seekable_ && position >= 0 && ::lseek(fd_, base_ + position, SEEK_SET) >= 0, name_,
            ": cannot seek to byte ", position);
    reader_ = ByteReader(fd_, name_);  // drops what was read ahead
    position_ = position;
}

void Input::spool() {
    require(!seekable_ && position_ == 0, name_, ": cannot be copied: part of it has been read");
    const int kept = spool_to_unlinked_file(fd_, reader_.peek(peeked_));
    if (owned_) ::close(fd_);
    fd_ = kept;
    owned_ = true;
    examine();
}

}  // namespace hark
