#include "serve/web/socket_connection.h"

#include <poll.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/field.hpp>
#include <chrono>
#include <utility>

#include "core/error.h"

namespace hark::serve {
namespace {

namespace websocket = boost::beast::websocket;
using ErrorCode = boost::system::error_code;
using Timer = boost::asio::steady_timer;

constexpr size_t kMostMessage = size_t{1} << 20, kMostUnread = size_t{1} << 20;
constexpr size_t kMostReason = 123;
constexpr std::chrono::milliseconds kLookForEnd{500};
constexpr double kCloseSeconds = 2;  // for a client to answer a close, and to end the connection

}  // namespace

SocketConnection::SocketConnection(const boost::asio::any_io_executor& executor,
                                   double client_seconds)
    : client_seconds_(client_seconds),
      has_room_(executor),
      has_more_(executor),
      read_limit_(executor),
      write_limit_(executor) {}

boost::asio::awaitable<void> SocketConnection::run(Stream stream, Request request,
                                                   std::string protocol,
                                                   std::shared_ptr<SocketListener> listener) {
    const auto self = shared_from_this();
    socket_.emplace(std::move(stream));
    listener_ = std::move(listener);
    // The listener has the socket: each would keep the other. Also if the server ends before this.
    const std::shared_ptr<void> end(nullptr, [this](void*) { listener_.reset(); });
    socket_->next_layer().expires_never();
    socket_->set_option(websocket::stream_base::timeout{duration_of(client_seconds_),
                                                        websocket::stream_base::none(), false});
    socket_->set_option(websocket::stream_base::decorator([&](websocket::response_type& response) {
        if (!protocol.empty())
            response.set(boost::beast::http::field::sec_websocket_protocol, protocol);
    }));
    socket_->control_callback([this](websocket::frame_type kind, boost::beast::string_view) {
        if (kind != websocket::frame_type::close) return;
        listener_->left();
        limit(write_limit_, kCloseSeconds, &SocketConnection::cut_off);
    });
    socket_->read_message_max(kMostMessage);
    socket_->text(true);
    ErrorCode error;
    co_await socket_->async_accept(request,
                                   boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (!error && !is_cut_) {
        boost::asio::co_spawn(
            socket_->get_executor(),
            [self]() -> boost::asio::awaitable<void> { co_await self->write_all(); },
            boost::asio::detached);
        co_await read_all();
    }
    has_left_ = true;
    read_limit_.cancel();
    write_limit_.cancel();
    has_more_.cancel();
    listener_->left();
}

boost::asio::awaitable<void> SocketConnection::read_all() {
    while (true) {
        const bool is_there = co_await wait_for_room();
        if (!is_there) co_return;
        if (listener_->wants() == SocketListener::Wants::message)
            limit(read_limit_, client_seconds_, &SocketConnection::end_silent);
        ErrorCode error;
        co_await socket_->async_read(
            message_, boost::asio::redirect_error(boost::asio::use_awaitable, error));
        read_limit_.cancel();
        if (error) co_return;
        const std::string_view message(static_cast<const char*>(message_.data().data()),
                                       message_.size());
        if (!close_ && socket_->got_text()) listener_->text(message);
        if (!close_ && !socket_->got_text()) listener_->binary(message);
        message_.consume(message_.size());
    }
}

boost::asio::awaitable<bool> SocketConnection::wait_for_room() {
    while (!close_ && listener_->wants() == SocketListener::Wants::pause) {
        has_room_.expires_after(kLookForEnd);
        ErrorCode cancelled;
        co_await has_room_.async_wait(
            boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
        if (has_hung_up()) co_return false;
    }
    co_return true;
}

// Whether the client has ended the connection, although not all that it sent has been read.
bool SocketConnection::has_hung_up() {
    pollfd state = {socket_->next_layer().socket().native_handle(), POLLRDHUP, 0};
    return ::poll(&state, 1, 0) > 0;
}

boost::asio::awaitable<void> SocketConnection::write_all() {
    while (!has_left_) {
        ErrorCode error;
        if (!waiting_.empty()) {
            const std::string text = std::move(waiting_.front());
            waiting_.pop_front();
            waiting_bytes_ -= text.size();
            limit(write_limit_, client_seconds_, &SocketConnection::cut_off);
            co_await socket_->async_write(
                boost::asio::buffer(text),
                boost::asio::redirect_error(boost::asio::use_awaitable, error));
            write_limit_.cancel();
            if (error) co_return cut_off();
        } else if (close_) {
            limit(write_limit_, kCloseSeconds, &SocketConnection::cut_off);
            co_await socket_->async_close(
                *close_, boost::asio::redirect_error(boost::asio::use_awaitable, error));
            co_return cut_off();
        } else {
            has_more_.expires_at(Timer::time_point::max());
            co_await has_more_.async_wait(
                boost::asio::redirect_error(boost::asio::use_awaitable, error));
        }
    }
}

void SocketConnection::send(std::string text) {
    if (has_left_ || is_cut_ || close_) return;
    waiting_bytes_ += text.size();
    waiting_.push_back(std::move(text));
    // Who reads nothing is cut off.
    if (waiting_bytes_ > kMostUnread) return cut_off();
    has_more_.cancel();
}

void SocketConnection::close(int code, std::string reason) {
    if (close_) return;
    size_t end = std::min(reason.size(), kMostReason);
    // At the begin of a character.
    while (end < reason.size() && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
    reason.resize(end);
    close_.emplace(static_cast<websocket::close_code>(code), reason);
    has_more_.cancel();
    has_room_.cancel();
}

void SocketConnection::resume() { has_room_.cancel(); }

void SocketConnection::limit(Timer& timer, double seconds, void (SocketConnection::*late)()) {
    timer.expires_after(duration_of(seconds));
    timer.async_wait([weak = weak_from_this(), late](const ErrorCode& error) {
        const auto self = weak.lock();
        if (!error && self) (self.get()->*late)();
    });
}

void SocketConnection::end_silent() {
    close(kClosedPolicy, concat("nothing came for ", client_seconds_, " s"));
    listener_->left();
}

void SocketConnection::cut_off() {
    is_cut_ = true;
    if (socket_) socket_->next_layer().close();  // ends what reads and writes
}

}  // namespace hark::serve
