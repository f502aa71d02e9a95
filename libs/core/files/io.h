// Byte streams over file descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

// What ends another thread's reading: a ByteReader that has it finds its file's end once it is set.
class Interrupt {
  public:
    Interrupt();  // throws Error where the system has no file descriptor left
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    void set();
    // Waits until `fd` can be read; false where it is set.
    bool wait_for(int fd) const;

  private:
    int event_;
};

// Gives a pipe room for 1 MiB, so that its two ends rarely wait for one another: its reader calls
// this. Another file, a larger pipe, and a pipe of a user who has used up what the system allows
// stay as they are.
void widen_pipe(int fd);

// Reads a file descriptor that may be a pipe. Throws Error where the system call fails.
class ByteReader {
  public:
    // `interrupt`, if any, must outlive it.
    ByteReader(int fd, std::string name, const Interrupt* interrupt = nullptr)
        : fd_(fd), name_(std::move(name)), interrupt_(interrupt) {}
    virtual ~ByteReader() = default;

    // From here on `interrupt`, which must outlive it, ends the reading.
    void interrupt_by(const Interrupt& interrupt) { interrupt_ = &interrupt; }
    // Fills up to `bytes`; fewer only at the end of the file.
    size_t read(void* to, size_t bytes);
    // The next bytes without taking them: up to `bytes`, fewer at the end of the file.
    std::string_view peek(size_t bytes);
    // Whatever has come, at least one byte unless the file has ended.
    size_t read_some(void* to, size_t bytes);
    const std::string& name() const { return name_; }

  protected:
    // The file's next bytes: at least one unless it has ended.
    virtual size_t read_file(void* to, size_t bytes);

  private:
    size_t take_some(void* to, size_t bytes);
    const char* stage() const;  // of a profile: null while nothing is measured

    int fd_;
    std::string name_;
    const Interrupt* interrupt_;
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
