// TensorBoard's event files: scalars over the steps of a run.
// Source, in tensorflow/core: util/event.proto and framework/summary.proto (fields),
// lib/io/record_writer.cc and lib/hash/crc32c.h (a record's frame and its masked checksum).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/files/io.h"

namespace hark::gpt {

// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);
// A record: its length, the length's checksum, the bytes, their checksum.
std::string tf_record(std::string_view bytes);

class EventFile {
  public:
    using Scalar = std::pair<const char*, double>;  // tag and value

    // Makes a file in `directory`, and the directory; TensorBoard shows a directory as one run. A
    // `first_step` of 2 or more continues a run: earlier files' events from that step on are void.
    // Throws Error with what cannot be made.
    EventFile(const std::filesystem::path& directory, int64_t first_step);
    ~EventFile();
    EventFile(const EventFile&) = delete;
    EventFile& operator=(const EventFile&) = delete;

    // Writes one event; it is in the file when this returns. Throws Error if it cannot.
    void add(int64_t step, std::span<const Scalar> scalars);
    const std::filesystem::path& path() const { return path_; }

  private:
    void write(const std::string& event);

    std::filesystem::path path_;
    int fd_;
    ByteWriter out_;
};

}  // namespace hark::gpt
