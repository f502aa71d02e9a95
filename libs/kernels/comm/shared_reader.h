// A stream of the first of several processes, which all of them read.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "core/files/io.h"
#include "kernels/comm/communicator.h"

namespace hark {

// Reads what rank 0's file descriptor has. All ranks must read alike, on the thread of their other
// collectives; a process alone may read on any thread.
class SharedReader : public ByteReader {
  public:
    // `ranks` must outlive it.
    SharedReader(int fd, std::string name, Communicator& ranks,
                 const Interrupt* interrupt = nullptr)
        : ByteReader(fd, std::move(name), interrupt), ranks_(ranks) {}

  protected:
    size_t read_file(void* to, size_t bytes) override {
        size_t count = ranks_.first() ? ByteReader::read_file(to, bytes) : 0;
        ranks_.share(std::as_writable_bytes(std::span(&count, 1)), 0);
        ranks_.share(std::span(static_cast<std::byte*>(to), count), 0);
        return count;
    }

  private:
    Communicator& ranks_;
};

}  // namespace hark
