// What clients are told of handlers that fail.
#include "serve/web/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/openai/errors.h"
#include "serve/web/web_server.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/process.h"
#include "support/web_socket.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace hark::test {
namespace {

using namespace hark::serve;
namespace asio = boost::asio;

// Has no memory in the method that the path names.
class Poor : public WebSite {
  public:
    BodyRule receive(const WebRequest& head) override {
        if (head.path == "/receive") throw std::bad_alloc();
        return {.is_socket = head.path == "/open"};
    }
    void answer(WebRequest, std::shared_ptr<WebAnswer>) override { throw std::bad_alloc(); }
    std::shared_ptr<SocketListener> open(WebRequest, std::shared_ptr<WebSocket>) override {
        throw std::bad_alloc();
    }
    WebResponse refusal(const WebError& why) const override { return error_response(why); }
    void drain() override {}
};

// Closes each WebSocket at once, for a reason.
class Closing : public WebSite, public SocketListener {
  public:
    explicit Closing(std::string reason) : reason_(std::move(reason)) {}

    BodyRule receive(const WebRequest&) override { return {.is_socket = true}; }
    void answer(WebRequest, std::shared_ptr<WebAnswer>) override {}
    std::shared_ptr<SocketListener> open(WebRequest, std::shared_ptr<WebSocket> socket) override {
        socket->close(kClosedFailure, reason_);
        return {std::shared_ptr<void>(), this};
    }
    WebResponse refusal(const WebError& why) const override { return error_response(why); }
    void drain() override {}

    void binary(std::string_view) override {}
    void text(std::string_view) override {}
    Wants wants() const override { return Wants::nothing; }
    void left() override {}

  private:
    std::string reason_;
};

// All that the site answers to one request, of a client that then sends no more or waits.
std::string answer_of(WebSite& site, const std::string& path, bool waits = false) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    asio::io_context io{1};
    const auto shared = std::make_shared<WebShared>();
    shared->site = &site;
    asio::co_spawn(io,
                   Connection::run(std::make_shared<Connection>(
                       Connection::Socket(io, asio::local::stream_protocol(), ends[0]), shared)),
                   asio::detached);
    const std::string request =
        request_text("GET", path, "",
                     {"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="});
    EXPECT_EQ(::write(ends[1], request.data(), request.size()), std::ssize(request));
    if (!waits) ::shutdown(ends[1], SHUT_WR);
    io.run_for(std::chrono::seconds(20));
    std::string answer;
    char piece[4096];
    for (ssize_t n; (n = ::read(ends[1], piece, sizeof piece)) > 0;)
        answer.append(piece, static_cast<size_t>(n));
    ::close(ends[1]);
    return answer;
}

TEST(Connection, ALackOfMemoryIsAnswered) {
    Poor site;
    for (const char* const path : {"/receive", "/answer", "/open"}) {
        SCOPED_TRACE(path);
        const std::string answer = answer_of(site, path);
        EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
        expect_contains(answer, "out of memory");
        expect_contains(answer, "insufficient_memory");
    }
}

TEST(Connection, AReasonIsNotCutWithinACharacter) {
    std::string reason = "xx";
    while (reason.size() < 200) reason += "\xC3\xA4";
    Closing site(reason);
    // A close frame: its length, its code, 1011, and at most 123 bytes.
    expect_contains(answer_of(site, "/", true), "\x88\x7C\x03\xF3" + reason.substr(0, 122));
}

// Nobody can connect to it by a stream, so whether it is in use is not known.
TEST(WebServer, ASocketOfAnotherKindIsNotRemoved) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() / "socket";
    sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    const int datagrams = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(datagrams, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    WebServerOptions options;
    options.socket = path;
    WebServer server(options);
    EXPECT_EQ(error_of([&] { server.listen(); }),
              path +
                  ": cannot tell whether a program listens on it: Protocol wrong type for "
                  "socket; give another --socket");
    EXPECT_TRUE(std::filesystem::exists(path));
    ::close(datagrams);
}

}  // namespace
}  // namespace hark::test
