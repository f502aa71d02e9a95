// What the headers of an HTTP answer say about a file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace hark::models {

struct RemoteFile {
    bool found = false;    // false where the answer was 404
    uint64_t bytes = 0;    // its size
    std::string version;   // its ETag without quotes, else its Last-Modified, or empty
    std::string sha256;    // of the content, or empty
    std::string git_blob;  // git's object name of the content, or empty
    std::string if_range;  // for a part of this version alone (RFC 9110, 13.1.5), or empty

    bool has_hash() const { return !sha256.empty() || !git_blob.empty(); }
};

// The headers of the latest answer.
class HttpHeaders {
  public:
    // Adds one line; a status line begins another answer.
    void add(std::string_view line);
    // Returns the value of a header, by its name in lower case; empty if there is none.
    std::string get(const std::string& name) const;
    // Whether the file is at another address: the answer has X-Linked-ETag.
    bool tell_of_linked_file() const { return !get("x-linked-etag").empty(); }

  private:
    std::map<std::string, std::string> values_;
};

// Returns what an answer's headers say. Hugging Face and its mirrors state size and SHA-256 of a
// large file in the answer that redirects to it (X-Linked-Size, X-Linked-ETag), and git's object
// name of a small one as its ETag next to X-Repo-Commit. Other ETags are no hashes. Throws Error
// that begins with `url` if no size is stated. Source: huggingface.co/docs/hub, and
// huggingface_hub's file_download.py, get_hf_file_metadata.
RemoteFile file_of(const HttpHeaders& headers, const std::string& url);

// Returns 100 for the Content-Range "bytes 100-199/200"; nullopt for another form.
std::optional<uint64_t> begin_of_part(std::string_view content_range);

// Returns 30 for the Retry-After "30"; nullopt for another form, such as a date.
std::optional<int64_t> seconds_of(std::string_view retry_after);

}  // namespace hark::models
