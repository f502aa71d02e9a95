// Whole files: mapped for reading, written so that no half of one ever has its final name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace hark {

// A file mapped for reading. Throws Error naming the file where it cannot be opened or mapped.
class MappedFile {
  public:
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::byte* data() const { return data_; }
    size_t size() const { return size_; }
    std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
    const std::string& name() const { return name_; }
    // Lets the pages of [offset, offset + bytes) go; they are read again where they are used again.
    void forget(size_t offset, size_t bytes) const;

  private:
    std::byte* data_ = nullptr;
    size_t size_ = 0;
    std::string name_;
};

// The file's content. Throws Error naming the file, also where it is larger than `limit` bytes.
std::string read_file(const std::filesystem::path& path, size_t limit = size_t{256} << 20);

// The file's first bytes, `most` of them or as many as it has: by these kinds of files are told.
// None of a pipe, whose bytes can be read but once. Throws Error naming the file where it cannot be
// read.
std::string first_bytes(const std::filesystem::path& path, size_t most);
// "the bytes 50 4b 03 04", or "nothing" of none: for messages.
std::string as_hex(std::string_view bytes);

// A file that appears under its name only once it is whole: commit() flushes it to the disk and
// renames it; without commit() the temporary file next to the target is removed.
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
    std::string target_, temporary_;
    int fd_ = -1;
};

// For mkstemp() and mkdtemp(): a name next to the target's that no listing shows, as what is
// written there stays if the process is ended.
std::string hidden_beside(const std::filesystem::path& target);

// Writes a whole file, which appears when it is there. Throws Error naming it.
void write_file(const std::filesystem::path& path, std::string_view text);

// A new temporary file without a name, open for reading and writing; the caller closes it. Throws
// Error if none can be made.
int make_unlinked_file();

// An unlinked temporary file that holds what is left of `fd` to read, positioned at its start:
// for readers that must seek. The caller closes it. Throws Error where the disk is full.
int spool_to_unlinked_file(int fd, std::string_view already_read);

}  // namespace hark
