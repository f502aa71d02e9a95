// Byte streams over file descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

// Reads a file descriptor that may be a pipe. Throws Error where the system call fails.
class ByteReader {
  public:
    ByteReader(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

    // Fills up to `bytes`; fewer only at the end of the file.
    size_t read(void* to, size_t bytes);
    // The next bytes without taking them: up to `bytes`, fewer at the end of the file.
    std::string_view peek(size_t bytes);
    // Whatever has come, at least one byte unless the file has ended.
    size_t read_some(void* to, size_t bytes);
    const std::string& name() const { return name_; }

  private:
    int fd_;
    std::string name_;
    std::vector<char> ahead_;  // peeked and not yet taken
};

// Writes to a file descriptor; flush() or the next write throws Error where the system refuses.
class ByteWriter {
  public:
    ByteWriter(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

    void write(const void* from, size_t bytes);
    void write(std::string_view text) { write(text.data(), text.size()); }
    void flush();

  private:
    void write_through(const char* from, size_t bytes);

    int fd_;
    std::string name_;
    std::vector<char> buffer_;
};

}  // namespace hark
