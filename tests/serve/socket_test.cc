// A WebSocket's connection with a client that reads nothing.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "serve/openai/errors.h"
#include "serve/web/connection.h"
#include "support/web_socket.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace hark::test {
namespace {

using namespace hark::serve;
namespace asio = boost::asio;

// Answers a message with a number of messages.
class Talker : public WebSite, public SocketListener {
  public:
    explicit Talker(size_t messages) : messages_(messages) {}

    BodyRule receive(const WebRequest&) override { return {.is_socket = true}; }
    void answer(WebRequest, std::shared_ptr<WebAnswer>) override {}
    std::shared_ptr<SocketListener> open(WebRequest, std::shared_ptr<WebSocket> socket) override {
        socket_ = std::move(socket);
        return {std::shared_ptr<void>(), this};
    }
    WebResponse refusal(const WebError& why) const override { return error_response(why); }
    void drain() override {}

    void binary(std::string_view) override {}
    void text(std::string_view) override {
        for (size_t i = 0; i < messages_; ++i) socket_->send(std::string(1 << 16, 'a'));
        socket_->close(kClosedNormally, "");
    }
    Wants wants() const override { return Wants::nothing; }
    void left() override { has_left = true; }

    bool is_open() const { return socket_ != nullptr; }

    bool has_left = false;

  private:
    size_t messages_;
    std::shared_ptr<WebSocket> socket_;
};

// Whether the connection ends by itself while its client reads nothing. `bytes`: what the client
// then finds.
bool ends(size_t messages, double client_seconds, size_t& bytes) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    asio::io_context io{1};
    Talker talker(messages);
    const auto shared = std::make_shared<WebShared>();
    shared->options.client_seconds = client_seconds;
    shared->site = &talker;
    asio::co_spawn(io,
                   Connection::run(std::make_shared<Connection>(
                       Connection::Socket(io, asio::local::stream_protocol(), ends[0]), shared)),
                   asio::detached);
    const auto write = [&](const std::string& text) {
        EXPECT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
    };
    write(request_text("GET", "/", "",
                       {"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}));
    while (!talker.is_open()) io.run_one();
    io.poll();
    write(TestSocket::frame(1, "go"));
    io.run_for(std::chrono::seconds(20));
    std::vector<char> read(size_t{1} << 16);
    bytes = 0;
    for (ssize_t n = 0; (n = ::read(ends[1], read.data(), read.size())) > 0;)
        bytes += static_cast<size_t>(n);
    ::close(ends[1]);
    return talker.has_left && shared->running == 0;
}

TEST(Socket, AClientThatReadsNothingIsCutOff) {
    size_t bytes = 0;
    // Too slow with the queue, and more than is kept for one.
    EXPECT_TRUE(ends(14, 0.2, bytes));
    EXPECT_LT(bytes, 14u << 16);
    EXPECT_TRUE(ends(200, 1000, bytes));
    EXPECT_LT(bytes, 1u << 20);
}

}  // namespace
}  // namespace hark::test
