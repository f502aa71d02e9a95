// HTTP and HTTPS: what a server says of a file, and its bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"

namespace hark::models {

// A transfer failed in a way that may pass: tried again it may succeed.
class TransferError : public Error {
  public:
    using Error::Error;
};

struct RemoteFile {
    bool found = false;    // false where the answer was 404
    uint64_t bytes = 0;    // its size
    std::string version;   // its ETag without the quotes; empty where the server gives none
    std::string sha256;    // of its content, or empty
    std::string git_blob;  // what git calls its content, or empty
};

class HttpClient {
  public:
    // A transfer that brings nothing for `stall_seconds` is given up.
    explicit HttpClient(int64_t stall_seconds);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;

    // What the server says of a file, from the headers alone. Hugging Face and its mirrors tell
    // size and SHA-256 of a large file in the answer that redirects to it (X-Linked-Size,
    // X-Linked-ETag), and git's name for a small one as its ETag beside X-Repo-Commit; other ETags
    // name a version and no hash. Throws Error naming the URL where the answer is another than 200
    // or 404 or tells no size, TransferError where it may be another one later. Source:
    // huggingface.co/docs/hub, and huggingface_hub's file_download.py, get_hf_file_metadata.
    RemoteFile ask(const std::string& url);

    // Gives a file's bytes from `offset` on to `take`. Before the first of them `begin` is told
    // where they begin: at `offset`, or at 0 where the server does not give parts. Throws as ask(),
    // and what `begin` and `take` throw.
    void get(const std::string& url, uint64_t offset, const std::function<void(uint64_t)>& begin,
             const std::function<void(std::string_view)>& take);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hark::models
