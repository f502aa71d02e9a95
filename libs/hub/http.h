// HTTP and HTTPS: what a server says about a file, and the file's bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "hub/http_headers.h"

namespace hark::models {

// A failure that may pass: another attempt may succeed.
class TransferError : public Error {
  public:
    using Error::Error;
};

// The server asks to wait (Retry-After).
class BusyServer : public TransferError {
  public:
    BusyServer(const std::string& message, int64_t seconds)
        : TransferError(message), seconds(seconds) {}
    const int64_t seconds;
};

// The server refuses, and will again: its status, and the reason of Hugging Face's servers
// ("GatedRepo", "RevisionNotFound"; X-Error-Code), or empty.
class Refusal : public Error {
  public:
    Refusal(const std::string& message, long status, std::string code)
        : Error(message), status(status), code(std::move(code)) {}
    const long status;
    const std::string code;
};

// The file has changed since the server was asked.
class ChangedFile : public TransferError {
  public:
    using TransferError::TransferError;
};

// With HARK_OFFLINE in the environment (not empty, not 0) each request throws Error.
class HttpClient {
  public:
    // HTTPS trusts the system's certificates, or those in $SSL_CERT_FILE, as the curl command does.
    // A transfer without a byte for `stall_seconds` fails.
    explicit HttpClient(int64_t stall_seconds);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;

    // Requests to the scheme, host and port of `server` have this token from now on, those after a
    // redirect to another one never. Throws Error for a token that is_token() refuses, and for a
    // server that is_private() refuses. The token is in no message.
    void authorize(const std::string& server, const std::string& token);

    // Returns the body of an answer of at most `limit` bytes. Throws as ask(), Refusal for 404 too.
    std::string text(const std::string& url, size_t limit);

    // Returns what the headers say about a file (http_headers.h). Throws Error naming the URL if
    // the status is neither 200 nor 404 (Refusal) or no size is stated; TransferError if that may
    // pass.
    RemoteFile ask(const std::string& url);

    // Passes a file's bytes from `offset` to `take`. `begin` is called before with the offset of
    // the first byte: `offset`, or 0 if the server gives no parts or the file is no longer the
    // version `if_range` (RemoteFile; empty: any). Throws as ask(), ChangedFile if the answer is of
    // another version than `if_range`, and what `begin` and `take` throw.
    void get(const std::string& url, uint64_t offset, const std::string& if_range,
             const std::function<void(uint64_t)>& begin,
             const std::function<void(std::string_view)>& take);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace hark::models
