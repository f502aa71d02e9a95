// The bytes of one recording: a file, or a pipe that cannot seek.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/files/io.h"

namespace hark {

class Input {
  public:
    // "-" is standard input. Throws Error naming the file if it cannot be opened.
    explicit Input(const std::string& path);
    // Reads an open descriptor from its position on; the caller closes it.
    Input(int fd, std::string name);
    ~Input();
    Input(const Input&) = delete;
    Input& operator=(const Input&) = delete;

    const std::string& name() const { return name_; }
    bool seekable() const { return seekable_; }
    int64_t size() const;  // bytes from the beginning; the input must be seekable

    // Returns the next bytes without consuming them: up to `bytes`, fewer at the end.
    std::string_view peek(size_t bytes);
    // Throws Error unless there is at least one byte. `expected` is what it should hold: "audio".
    void require_content(const char* expected);
    // Reads what has arrived: at least one byte unless the input has ended.
    size_t read_some(void* to, size_t bytes);
    // Reads `bytes`; fewer only at the end.
    size_t read(void* to, size_t bytes);
    int64_t position() const { return position_; }  // bytes from the beginning
    // The reader itself, for a tensor stream.
    ByteReader& reader() { return reader_; }
    void seek(int64_t position);  // the input must be seekable

    // Copies a pipe to an unlinked file, which is seekable. Nothing may have been read before.
    void spool();

  private:
    void examine();

    std::string name_;
    int fd_ = -1;
    bool owned_ = false;
    bool seekable_ = false;
    int64_t base_ = 0;  // where the recording begins in the file
    int64_t position_ = 0;
    size_t peeked_ = 0;
    ByteReader reader_;
};

}  // namespace hark
