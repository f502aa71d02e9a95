// TensorBoard's event files: scalars over the steps of a run.
// Source: tensorflow/core/util/event.proto and framework/summary.proto (fields),
// tensorflow/core/lib/io/record_writer.cc and lib/hash/crc32c.h (a record's frame and its masked
// checksum).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/io.h"

namespace hark::gpt {

// CRC-32C (Castagnoli), as RFC 3720 takes it.
uint32_t crc32c(std::string_view bytes);
// A record's frame: its length, a checksum of that, the bytes, a checksum of those.
std::string tf_record(std::string_view bytes);

class EventFile {
  public:
    using Scalar = std::pair<const char*, double>;  // tag and value

    // A new file in `directory`, which is made where there is none; TensorBoard takes all files of
    // a directory for one run. `first_step`: with 2 or more it goes on, and what earlier files have
    // of that step and behind is void. Throws Error naming what cannot be made.
    EventFile(const std::filesystem::path& directory, int64_t first_step);
    ~EventFile();
    EventFile(const EventFile&) = delete;
    EventFile& operator=(const EventFile&) = delete;

    // One event, in the file when this returns. Throws Error where the system refuses.
    void add(int64_t step, std::span<const Scalar> scalars);
    const std::filesystem::path& path() const { return path_; }

  private:
    void write(const std::string& event);

    std::filesystem::path path_;
    int fd_;
    ByteWriter out_;
};

}  // namespace hark::gpt
