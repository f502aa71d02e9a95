// A small HTTP server on loopback, which misbehaves as a test asks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hark::test {

struct HttpRequest {
    std::string method, path;
    std::string range;               // "bytes=100-", or empty
    std::string if_range;            // the version that the range is wanted of, or empty
    std::string authorization = "";  // "Bearer ...", or empty
    bool operator==(const HttpRequest&) const = default;
};

struct HttpResponse {
    int status = 200;
    std::map<std::string, std::string> headers;
    std::string body;
    size_t cut = SIZE_MAX;  // the connection ends after that many bytes of the body
};

// Answers one connection after another on a thread of its own, each with what `answer` makes of its
// request; a HEAD gets the headers alone. Content-Length is the body's unless the headers have one;
// a header of no text is left out.
class HttpServer {
  public:
    using Answer = std::function<HttpResponse(const HttpRequest&)>;
    explicit HttpServer(Answer answer);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;

    std::string url() const;                    // "http://127.0.0.1:40001"
    std::vector<HttpRequest> requests() const;  // all that have come

  private:
    void serve();
    void converse(int connection);

    Answer answer_;
    int socket_ = -1;
    int port_ = 0;
    mutable std::mutex mutex_;
    std::vector<HttpRequest> requests_;
    std::atomic<bool> ending_ = false;
    std::thread thread_;
};

// `body` as a server that gives parts answers: 206 with what the range asks for, 200 without one.
HttpResponse in_parts(const HttpRequest& request, const std::string& body);

}  // namespace hark::test
