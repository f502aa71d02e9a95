#include "serve/web/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <chrono>

#include "serve/web/paths.h"
#include "serve/web/socket_connection.h"

namespace hark::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using ErrorCode = boost::system::error_code;
using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

constexpr size_t kMostHead = size_t{32} << 10, kReadBytes = size_t{64} << 10;
constexpr size_t kWriteBytes = size_t{16} << 10, kMostPending = size_t{16} << 20;

// Counts a request that runs.
class Running {
  public:
    explicit Running(WebShared& shared) : shared_(shared), span_(shared.profile_rows) {
        ++shared_.running;
    }
    ~Running() {
        if (--shared_.running == 0 && shared_.is_draining) shared_.on_idle();
    }
    Running(const Running&) = delete;

  private:
    WebShared& shared_;
    RequestSpan span_;
};

template <class Message>
std::string field_of(const Message& message, http::field field) {
    const auto found = message.find(field);
    return found == message.end() ? "" : std::string(found->value());
}

// The parts of a list with commas.
std::vector<std::string> tokens_of(const std::string& list) {
    std::vector<std::string> tokens;
    for (const auto& token : http::token_list(list)) tokens.emplace_back(token);
    return tokens;
}

template <class Message>
WebRequest request_of(const Message& message) {
    return {.method = std::string(message.method_string()),
            .path = path_of(std::string_view(message.target().data(), message.target().size())),
            .query = query_of(std::string_view(message.target().data(), message.target().size())),
            .host = field_of(message, http::field::host),
            .origin = field_of(message, http::field::origin),
            .content_type = field_of(message, http::field::content_type),
            .authorization = field_of(message, http::field::authorization),
            .protocols = tokens_of(field_of(message, http::field::sec_websocket_protocol))};
}

}  // namespace

void PendingAnswer::send(WebResponse response) {
    if (has_left_) return;
    is_whole_ = true;
    begin(std::move(response));
    end();
}

void PendingAnswer::begin(WebResponse head) {
    if (has_left_) return;
    bytes_ = std::move(head.body);
    head_ = std::move(head);
    changed_.cancel();
}

void PendingAnswer::add(std::string_view part) {
    if (has_left_) return;
    bytes_ += part;
    // Who reads nothing is cut off.
    if (bytes_.size() > kMostPending) return leave();
    changed_.cancel();
}

void PendingAnswer::end() {
    has_ended_ = true;
    left_ = nullptr;
    changed_.cancel();
}

void PendingAnswer::leave() {
    if (has_left_ || has_ended_) return;
    has_left_ = true;
    if (const auto left = std::exchange(left_, nullptr)) left();
    changed_.cancel();
}

asio::awaitable<void> PendingAnswer::wait(Clock::time_point deadline, Clock::duration quiet) {
    const Clock::time_point pause = Clock::now() + quiet;
    while (!is_ready() && Clock::now() < deadline) {
        const bool fills_pauses = head_ && !head_->pause.empty();
        changed_.expires_at(fills_pauses ? std::min(pause, deadline) : deadline);
        ErrorCode cancelled;
        co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
        if (fills_pauses && !is_ready() && Clock::now() >= pause) bytes_ = head_->pause;
    }
}

asio::awaitable<void> Connection::run(std::shared_ptr<Connection> self) {
    for (bool stays_open = true; stays_open;) stays_open = co_await self->serve_one();
    ErrorCode ignored;
    self->stream_.socket().shutdown(Socket::shutdown_both, ignored);
}

asio::awaitable<bool> Connection::serve_one() {
    Parser parser;
    parser.header_limit(kMostHead);
    parser.body_limit(UINT64_MAX);  // read_body() counts
    ErrorCode error;
    stream_.expires_after(duration_of(shared_->options.client_seconds));
    co_await http::async_read_header(stream_, buffer_, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    keeps_alive_ = is_head_ = false;
    if (error == http::error::header_limit)
        co_return co_await refuse(WebError(
            431, concat("the request's head is too long (at most ", kMostHead, " bytes)")));
    const bool has_begun = error != http::error::end_of_stream && error != asio::error::eof;
    if (has_begun && error.category() == http::make_error_code(http::error::bad_method).category())
        co_return co_await refuse(WebError(400, "the request is not HTTP/1.1"));
    if (error) co_return false;
    const Running running(*shared_);
    keeps_alive_ = parser.get().keep_alive() && !shared_->is_draining;
    is_http_1_0_ = parser.get().version() < 11;
    co_return co_await serve_request(parser);
}

asio::awaitable<bool> Connection::serve_request(Parser& parser) {
    WebRequest request = request_of(parser.get());
    is_head_ = request.method == "HEAD";
    if (is_head_) request.method = "GET";
    BodyRule rule;
    std::optional<WebError> why;
    try {
        rule = shared_->site->receive(request);
    } catch (const std::exception& failure) {
        why = web_error_of(failure);
    }
    if (!why && rule.is_socket) co_return co_await serve_socket(parser, rule, std::move(request));
    if (!why) why = co_await read_body(parser, rule, request);
    if (!why && !parser.is_done()) co_return false;  // the client has left
    if (why) {
        keeps_alive_ = keeps_alive_ && parser.is_done();
        co_return co_await refuse(*why);
    }
    const auto answer = std::make_shared<PendingAnswer>(stream_.get_executor());
    try {
        shared_->site->answer(std::move(request), answer);
    } catch (const std::exception& failure) {
        why = web_error_of(failure);
    }
    if (why) co_return co_await refuse(*why);
    const std::shared_ptr<void> end(nullptr, [&](void*) { answer->forget(); });
    watch(answer);
    const bool stays_open = co_await write_answer(answer);
    answer->leave();
    ErrorCode ignored;
    stream_.socket().cancel(ignored);  // watch()'s wait
    co_return stays_open;
}

asio::awaitable<bool> Connection::serve_socket(Parser& parser, const BodyRule& rule,
                                               WebRequest request) {
    keeps_alive_ = false;
    if (!boost::beast::websocket::is_upgrade(parser.get()))
        co_return co_await refuse(
            WebError(400, "expected a WebSocket's request: Upgrade: websocket"));
    if (buffer_.size() > 0)
        co_return co_await refuse(WebError(400, "something was sent before the WebSocket is open"));
    const auto socket =
        std::make_shared<SocketConnection>(stream_.get_executor(), shared_->options.client_seconds);
    std::shared_ptr<SocketListener> listener;
    std::optional<WebError> why;
    try {
        listener = shared_->site->open(std::move(request), socket);
    } catch (const std::exception& failure) {
        why = web_error_of(failure);
    }
    if (why) co_return co_await refuse(*why);
    co_await socket->run(std::move(stream_), parser.release(), rule.protocol, listener);
    co_return false;
}

asio::awaitable<std::optional<WebError>> Connection::read_body(Parser& parser, const BodyRule& rule,
                                                               WebRequest& request) {
    const auto too_large = [&] {
        return WebError(
            413, concat("the request's body is too large (at most ", rule.most_bytes, " bytes)"));
    };
    if (parser.content_length().value_or(0) > rule.most_bytes) co_return too_large();
    if (parser.is_done() && !rule.is_form) co_return std::nullopt;
    const bool is_asked = field_of(parser.get(), http::field::expect) == "100-continue";
    if (is_asked) {
        const bool is_written = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
        if (!is_written) co_return std::nullopt;
    }
    std::optional<WebError> why;
    try {
        std::optional<MultipartReader> reader;
        if (rule.is_form) reader.emplace(form_boundary(request.content_type), request.form);
        std::string bytes(kReadBytes, '\0');
        for (uint64_t total = 0; !parser.is_done();) {
            parser.get().body().data = bytes.data();
            parser.get().body().size = bytes.size();
            ErrorCode error;
            stream_.expires_after(duration_of(shared_->options.client_seconds));
            co_await http::async_read(stream_, buffer_, parser,
                                      asio::redirect_error(asio::use_awaitable, error));
            if (error == http::error::need_buffer) error = {};
            if (error) co_return std::nullopt;
            const std::string_view part(bytes.data(), bytes.size() - parser.get().body().size);
            total += part.size();
            if (total > rule.most_bytes) co_return too_large();
            if (reader)
                reader->add(part);
            else
                request.body += part;
        }
        if (reader) reader->finish();
    } catch (const std::exception& failure) {
        why = web_error_of(failure, 507);  // an Error: the disk is full
    }
    co_return why;
}

asio::awaitable<bool> Connection::refuse(WebError why) {
    const auto answer = std::make_shared<PendingAnswer>(stream_.get_executor());
    answer->send(shared_->site->refusal(why));
    const bool stays_open = co_await write_answer(answer);
    if (!stays_open) co_await discard();
    co_return stays_open;
}

asio::awaitable<void> Connection::discard() {
    constexpr double kSeconds = 2;
    ErrorCode error;
    stream_.socket().shutdown(Socket::shutdown_send, error);
    stream_.expires_after(duration_of(kSeconds));
    std::string bytes(kReadBytes, '\0');
    while (!error)
        co_await stream_.async_read_some(asio::buffer(bytes),
                                         asio::redirect_error(asio::use_awaitable, error));
}

asio::awaitable<bool> Connection::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::string_view part = bytes.substr(0, kWriteBytes);
        ErrorCode error;
        stream_.expires_after(duration_of(shared_->options.client_seconds));
        co_await asio::async_write(stream_, asio::buffer(part.data(), part.size()),
                                   asio::redirect_error(asio::use_awaitable, error));
        if (error) co_return false;
        bytes.remove_prefix(part.size());
    }
    co_return true;
}

asio::awaitable<bool> Connection::write_answer(std::shared_ptr<PendingAnswer> answer) {
    const Clock::time_point deadline = Clock::now() + duration_of(shared_->options.answer_seconds);
    const bool is_chunked = !is_http_1_0_;
    bool has_head = false;
    while (true) {
        co_await answer->wait(deadline, duration_of(shared_->options.client_seconds / 2));
        if (answer->has_left()) co_return false;
        const bool has_ended = answer->has_ended();
        std::string body = answer->take(), out;
        if (body.empty() && !has_ended) {
            answer->leave();
            if (has_head) co_return false;
            keeps_alive_ = false;
            co_return co_await refuse(WebError(504, "the answer took too long", "", "timeout"));
        }
        const bool is_whole = answer->is_whole();
        if (!std::exchange(has_head, true)) {
            keeps_alive_ = keeps_alive_ && (is_whole || is_chunked);
            out = head_of(answer->head(), is_whole ? std::optional(body.size()) : std::nullopt);
        }
        if (is_head_) body.clear();
        const bool in_chunks = is_chunked && !is_whole && !is_head_;
        if (in_chunks && !body.empty()) {
            char size[24];
            out.append(size, static_cast<size_t>(
                                 std::snprintf(size, sizeof size, "%zx\r\n", body.size())));
            body += "\r\n";
        }
        out += body;
        if (in_chunks && has_ended) out += "0\r\n\r\n";
        const bool is_written = co_await write(out);
        if (!is_written) co_return false;
        if (has_ended) co_return keeps_alive_;
    }
}

std::string Connection::head_of(const WebResponse& response,
                                std::optional<size_t> body_bytes) const {
    const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
    std::string head =
        concat("HTTP/1.1 ", response.status, " ", std::string_view(reason.data(), reason.size()),
               "\r\nContent-Type: ", response.content_type, "\r\n");
    for (const auto& [name, value] : response.headers) head += concat(name, ": ", value, "\r\n");
    if (body_bytes)
        head += concat("Content-Length: ", *body_bytes, "\r\n");
    else if (!is_http_1_0_)
        head += "Transfer-Encoding: chunked\r\n";
    if (!keeps_alive_) head += "Connection: close\r\n";
    return head + "\r\n";
}

void Connection::watch(const std::shared_ptr<PendingAnswer>& answer) {
    if (buffer_.size() > 0) return;  // the next request is there
    stream_.socket().async_wait(
        Socket::wait_read, [self = shared_from_this(), answer](const ErrorCode& error) {
            if (error || answer->has_ended() || answer->has_left()) return;
            char byte = 0;
            const ssize_t n =
                ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) answer->leave();
        });
}

}  // namespace hark::serve
