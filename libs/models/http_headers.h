// What the headers of an HTTP answer say of a file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hark::models {

struct RemoteFile {
    bool found = false;  // false where the answer was 404
    uint64_t bytes = 0;  // its size
    std::string
        version;         // its ETag without the quotes, or else when it was last modified, or empty
    std::string sha256;  // of its content, or empty
    std::string git_blob;  // what git calls its content, or empty
    std::string
        if_range;  // what asks for a part of this version alone (RFC 9110, 13.1.5), or empty

    bool has_hash() const { return !sha256.empty() || !git_blob.empty(); }
};

// The headers of the latest answer.
class HttpHeaders {
  public:
    // Takes the next line; a status line begins another answer.
    void add(std::string_view line);
    // The value of a header, its name in small letters; empty if there is none.
    std::string get(const std::string& name) const;
    // Whether this answer tells of a file that is elsewhere: it has X-Linked-ETag.
    bool tell_of_linked_file() const { return !get("x-linked-etag").empty(); }

  private:
    std::map<std::string, std::string> values_;
};

// A file by an answer's headers. Hugging Face and its mirrors tell size and SHA-256 of a large file
// in the answer that redirects to it (X-Linked-Size, X-Linked-ETag), and git's name for a small one
// as its ETag next to X-Repo-Commit; other ETags name a version and no hash. Throws Error that
// begins with `url` where no size is told. Source: huggingface.co/docs/hub, and huggingface_hub's
// file_download.py, get_hf_file_metadata.
RemoteFile file_of(const HttpHeaders& headers, const std::string& url);

// Where the part of a Content-Range "bytes 100-199/200" begins; nullopt where it does not say so.
std::optional<uint64_t> begin_of_part(std::string_view content_range);

}  // namespace hark::models
