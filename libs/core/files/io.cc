#include "core/files/io.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/profile/profile.h"

namespace hark {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

size_t read_fd(int fd, const std::string& name, void* to, size_t bytes) {
    for (;;) {
        const ssize_t got = ::read(fd, to, bytes);
        if (got >= 0) return static_cast<size_t>(got);
        if (errno != EINTR) fail(name, ": cannot read: ", std::strerror(errno));
    }
}

}  // namespace

void widen_pipe(int fd) {
#ifdef F_SETPIPE_SZ
    constexpr int kPipeBytes = 1 << 20;
    if (::fcntl(fd, F_GETPIPE_SZ) < kPipeBytes) ::fcntl(fd, F_SETPIPE_SZ, kPipeBytes);
#else
    static_cast<void>(fd);
#endif
}

size_t ByteReader::read_file(void* to, size_t bytes) {
    if (interrupt_ && !interrupt_->wait_for(fd_)) return 0;
    return read_fd(fd_, name_, to, bytes);
}

const char* ByteReader::stage() const {
    return is_measured() ? stage_of(fd_, "wait.in", "read") : nullptr;
}

size_t ByteReader::read_some(void* to, size_t bytes) {
    const ProfileSpan span(ahead_.empty() ? stage() : nullptr);
    return take_some(to, bytes);
}

size_t ByteReader::take_some(void* to, size_t bytes) {
    if (ahead_.empty()) return read_file(to, bytes);
    const size_t taken = std::min(bytes, ahead_.size());
    std::memcpy(to, ahead_.data(), taken);
    ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<ptrdiff_t>(taken));
    return taken;
}

size_t ByteReader::read(void* to, size_t bytes) {
    const ProfileSpan span(ahead_.size() < bytes ? stage() : nullptr);
    size_t done = 0;
    while (done < bytes) {
        const size_t got = take_some(static_cast<char*>(to) + done, bytes - done);
        if (got == 0) break;
        done += got;
    }
    return done;
}

std::string_view ByteReader::peek(size_t bytes) {
    const ProfileSpan span(ahead_.size() < bytes ? stage() : nullptr);
    while (ahead_.size() < bytes) {
        // In steps: what a header promises may never come.
        const size_t have = ahead_.size(), step = std::min(bytes - have, kBufferBytes);
        ahead_.resize(have + step);
        const size_t got = read_file(ahead_.data() + have, step);
        ahead_.resize(have + got);
        if (got == 0) break;
    }
    return {ahead_.data(), std::min(bytes, ahead_.size())};
}

void ByteWriter::write_through(const char* from, size_t bytes) {
    if (bytes == 0) return;
    const ProfileSpan span(is_measured() ? stage_of(fd_, "wait.out", "write") : nullptr);
    while (bytes > 0) {
        const ssize_t put = ::write(fd_, from, bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail(name_, ": cannot write: ", std::strerror(errno));
        from += put;
        bytes -= static_cast<size_t>(put);
    }
}

void ByteWriter::write(const void* from, size_t bytes) {
    const char* text = static_cast<const char*>(from);
    if (buffer_.size() + bytes > kBufferBytes) {
        flush();
        if (bytes >= kBufferBytes) return write_through(text, bytes);
    }
    buffer_.insert(buffer_.end(), text, text + bytes);
}

void ByteWriter::flush() {
    write_through(buffer_.data(), buffer_.size());
    buffer_.clear();
}

}  // namespace hark
