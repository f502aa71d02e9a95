// HTTP/1.1 over TCP or a Unix socket: connections, limits and timeouts, on one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "serve/web/message.h"
#include "serve/web/service_manager.h"

namespace hark::serve {

struct WebServerOptions {
    std::string host = "127.0.0.1";
    int port = 8080;              // 0: any that is free
    std::string socket;           // path of a Unix socket, in place of host and port; empty: none
    std::optional<PassedSocket> passed;  // in place of all these
    double client_seconds = 30;   // for a head, for 64 KiB of a body, for 16 KiB of an answer
    double answer_seconds = 600;  // from a request's end to its answer's end
    double drain_seconds = 60;    // for running requests after drain()
};

class WebServer {
  public:
    explicit WebServer(WebServerOptions options);
    ~WebServer();
    WebServer(const WebServer&) = delete;

    // Takes connections from now on; run() answers them. Returns where: "http://127.0.0.1:8080", or
    // "unix:PATH". Throws Error for an address that cannot be taken.
    std::string listen();
    // Answers requests until a drain() has ended.
    void run(WebSite& site);

    // The rest may be called from any thread.

    // Runs `work` on run()'s thread, now or that many seconds later.
    void post(std::function<void()> work);
    void post_later(double seconds, std::function<void()> work);
    // Refuses new requests, and ends run() once the running ones have been answered.
    void drain();
    // Ends run() now. It throws Error with the reason.
    void fail_with(std::string reason);

  private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
};

}  // namespace hark::serve
