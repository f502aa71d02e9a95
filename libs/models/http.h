// HTTP and HTTPS: what a server says of a file, and its bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "models/http_headers.h"

namespace hark::models {

// A transfer failed in a way that may pass: tried again it may succeed.
class TransferError : public Error {
  public:
    using Error::Error;
};

// The file is no longer what it was when the server was asked.
class ChangedFile : public TransferError {
  public:
    using TransferError::TransferError;
};

class HttpClient {
  public:
    // Whom HTTPS trusts is the system's choice, or that of $SSL_CERT_FILE, as the curl command has
    // it. A transfer that brings nothing for `stall_seconds` is given up.
    explicit HttpClient(int64_t stall_seconds);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;

    // What the server says of a file (http_headers.h), from the headers alone. Throws Error naming
    // the URL where the answer is another than 200 or 404 or tells no size, TransferError where it
    // may be another one later.
    RemoteFile ask(const std::string& url);

    // Gives a file's bytes from `offset` on to `take`. Before the first of them `begin` is told
    // where they begin: at `offset`, or at 0 where the server does not give parts or, unless it is
    // empty, the file is no longer what `if_range` says (RemoteFile). Throws as ask(), ChangedFile
    // where the answer tells of another version than `if_range`, and what `begin` and `take` throw.
    void get(const std::string& url, uint64_t offset, const std::string& if_range,
             const std::function<void(uint64_t)>& begin,
             const std::function<void(std::string_view)>& take);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hark::models
