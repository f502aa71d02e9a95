// Forms: multipart/form-data (RFC 7578), read while it comes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hark::serve {

// A temporary file without a name; its space is free again once it is destroyed.
class SpooledFile {
  public:
    SpooledFile();  // throws Error if none can be made
    ~SpooledFile();
    SpooledFile(const SpooledFile&) = delete;
    SpooledFile& operator=(const SpooledFile&) = delete;

    void write(std::string_view bytes);  // throws Error if the disk is full
    int fd() const { return fd_; }
    uint64_t bytes() const { return bytes_; }

  private:
    int fd_;
    uint64_t bytes_ = 0;
};

struct Form {
    std::vector<std::pair<std::string, std::string>> fields;  // name, value; in the form's order
    std::shared_ptr<SpooledFile> file;                        // of the field `file`, or nullptr
};

// The boundary in a request's Content-Type. Throws WebError (415, 400) if it is no form's.
std::string form_boundary(std::string_view content_type);

class MultipartReader {
  public:
    // Reads into `form`, which must outlive it.
    MultipartReader(std::string_view boundary, Form& form);

    // The next bytes, cut anywhere. Throws WebError 400 for what is not a form, for a second file
    // and for fields that are too many or too large.
    void add(std::string_view bytes);
    // Throws WebError 400 if the form has not ended.
    void finish() const;

  private:
    enum class State { preamble, delimiter, head, value, epilogue };

    // Each returns whether it needs no more bytes for its state.
    bool read_to_delimiter();
    bool read_delimiter();
    bool read_head();
    void take(std::string_view bytes);
    void end_part();

    std::string delimiter_;  // with the line end before it
    Form& form_;
    State state_ = State::preamble;
    std::string held_;
    std::string name_, value_;  // of the part
    bool is_file_ = false;
};

}  // namespace hark::serve
