// A connection that has become a WebSocket (RFC 6455).
#pragma once

#include "serve/web/asio.h"

#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "serve/web/socket.h"

namespace hark::serve {

class SocketConnection : public WebSocket, public std::enable_shared_from_this<SocketConnection> {
  public:
    using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
    using Request = boost::beast::http::request<boost::beast::http::buffer_body>;

    // `client_seconds`: for a message of a client that has to send one, and for it to read one.
    SocketConnection(const boost::asio::any_io_executor& executor, double client_seconds);

    // Answers the request, and passes messages on until the connection ends. `protocol` is the
    // subprotocol that the answer names; empty: none.
    boost::asio::awaitable<void> run(Stream stream, Request request, std::string protocol,
                                     std::shared_ptr<SocketListener> listener);

    void send(std::string text) override;
    void close(int code, std::string reason) override;
    void resume() override;

  private:
    boost::asio::awaitable<void> read_all();
    boost::asio::awaitable<void> write_all();
    // Waits while the listener wants nothing to be read. Returns whether the client is still there.
    boost::asio::awaitable<bool> wait_for_room();
    bool has_hung_up();
    // Runs `late` unless the timer is set again, or stopped, before that.
    void limit(boost::asio::steady_timer& timer, double seconds, void (SocketConnection::*late)());
    void end_silent();
    void cut_off();

    std::optional<boost::beast::websocket::stream<Stream>> socket_;  // once it runs
    double client_seconds_;
    std::shared_ptr<SocketListener> listener_;
    boost::beast::flat_buffer message_;
    std::deque<std::string> waiting_;  // to be written
    size_t waiting_bytes_ = 0;
    std::optional<boost::beast::websocket::close_reason> close_;
    bool has_left_ = false, is_cut_ = false;
    boost::asio::steady_timer has_room_, has_more_, read_limit_, write_limit_;
};

}  // namespace hark::serve
