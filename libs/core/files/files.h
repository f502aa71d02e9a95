// Whole files: read at once, and written so that no half of one ever has its final name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/files/temporary_path.h"

namespace hark {

// A regular file that is open for reading. Throws Error naming the file, also for a folder, a pipe
// or a device: opening one never waits.
class OpenFile {
  public:
    explicit OpenFile(const std::filesystem::path& path);
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    int fd() const { return fd_; }
    size_t bytes() const { return bytes_; }

  private:
    int fd_ = -1;
    size_t bytes_ = 0;
};

// Returns a regular file's content. Throws Error naming the file, also if it is larger than `limit`
// bytes.
std::string read_file(const std::filesystem::path& path, size_t limit = size_t{256} << 20);
// The same, but a pipe is read to its end: for a file that the user names and that holds no model.
std::string read_file_or_pipe(const std::filesystem::path& path, size_t limit = size_t{256} << 20);

// Returns a regular file's first bytes: at most `most`. They tell the kinds of model files apart.
// Throws Error naming the file.
std::string first_bytes(const std::filesystem::path& path, size_t most);
// "the bytes 50 4b 03 04", or "nothing" of none: for messages.
std::string as_hex(std::string_view bytes);

// A file that appears under its name once it is whole: commit() flushes it to the disk and renames
// it. Without commit() the temporary file next to the target is removed (TemporaryPath).
class AtomicFile {
  public:
    explicit AtomicFile(const std::filesystem::path& target);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    int fd() const { return fd_; }
    const std::string& name() const { return target_; }
    void write(std::string_view text);
    void commit();

  private:
    std::string target_;
    std::optional<TemporaryPath> temporary_;  // none for a device or a pipe
    int fd_ = -1;
};

// Writes a whole file, which appears when it is there. Throws Error naming it.
void write_file(const std::filesystem::path& path, std::string_view text);

// A new temporary file without a name, open for reading and writing; the caller closes it. Throws
// Error if none can be made.
int make_unlinked_file();
// Makes one now for a later make_unlinked_file(), which then also throws what failed here: for a
// process that will have no right to make files.
void reserve_unlinked_file();

// An unlinked temporary file that holds what is left of `fd` to read, positioned at its start:
// for readers that must seek. The caller closes it. Throws Error where the disk is full.
int spool_to_unlinked_file(int fd, std::string_view already_read);

}  // namespace hark
