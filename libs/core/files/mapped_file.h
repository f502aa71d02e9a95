// A file mapped for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace hark {

// Throws Error naming the file if it cannot be opened or mapped, is empty or is no regular file.
// A file that becomes shorter while it is mapped has pages that cannot be read: reading one ends
// the process with exit status 1 and a message that names the file. The rest of the file's last
// page reads as zeros; check() finds that.
class MappedFile {
  public:
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::byte* data() const { return data_; }
    size_t size() const { return size_; }
    // Whether the address is in the file.
    bool holds(const void* at) const {
        return !std::less<>()(at, static_cast<const void*>(data_)) &&
               std::less<>()(at, static_cast<const void*>(data_ + size_));
    }
    std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
    const std::string& name() const { return name_; }
    // Throws Error if the file has become shorter. A file that was replaced by another of its name
    // is still there, and whole.
    void check() const;
    // Calls check(), then frees the pages of [offset, offset + bytes). The next use reads them
    // again.
    void forget(size_t offset, size_t bytes) const;
    // The line that is printed if the file becomes shorter.
    const std::string& shorter_line() const { return shorter_line_; }

  private:
    std::byte* data_ = nullptr;
    size_t size_ = 0;
    std::string name_, shorter_line_;
    uint64_t device_ = 0, inode_ = 0;
};

// Frees the whole pages of [from, from + bytes), which is in a MappedFile: other memory would lose
// what it holds. The next use reads them again.
void forget_pages(const void* from, size_t bytes);

}  // namespace hark
