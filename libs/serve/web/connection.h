// One connection: a request after another, each with its answer.
#pragma once

#include "serve/web/asio.h"

#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "serve/web/request_span.h"
#include "serve/web/web_server.h"

namespace hark::serve {

// What all connections of a server share.
struct WebShared {
    WebServerOptions options;
    WebSite* site = nullptr;
    bool is_draining = false;
    int64_t running = 0;            // requests whose head has come and whose answer has not ended
    std::function<void()> on_idle;  // no request runs any more
    RequestRows profile_rows;
};

// An answer between its handler and its connection.
class PendingAnswer : public WebAnswer {
  public:
    explicit PendingAnswer(const boost::asio::any_io_executor& executor) : changed_(executor) {}

    void send(WebResponse response) override;
    void begin(WebResponse head) override;
    void add(std::string_view part) override;
    void end() override;
    void when_left(std::function<void()> left) override { left_ = std::move(left); }

    // For the connection. Waits until there is something to write, the client has left, or until
    // `deadline`. If a streamed answer is quiet for that long, its pause is to be written.
    boost::asio::awaitable<void> wait(std::chrono::steady_clock::time_point deadline,
                                      std::chrono::steady_clock::duration quiet);
    // The client has left, or is cut off.
    void leave();
    // The connection ends with the server: nobody is told.
    void forget() { left_ = nullptr; }
    bool has_left() const { return has_left_; }
    bool has_begun() const { return head_.has_value(); }
    bool has_ended() const { return has_ended_; }
    bool is_whole() const { return is_whole_; }
    const WebResponse& head() const { return *head_; }
    // The bytes of the body that have not been written; then none are left.
    std::string take() { return std::exchange(bytes_, {}); }

  private:
    bool is_ready() const { return has_left_ || has_ended_ || !bytes_.empty(); }

    boost::asio::steady_timer changed_;
    std::optional<WebResponse> head_;
    std::string bytes_;
    bool is_whole_ = false, has_ended_ = false, has_left_ = false;
    std::function<void()> left_;
};

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    using Socket = boost::asio::generic::stream_protocol::socket;

    Connection(Socket socket, std::shared_ptr<WebShared> shared)
        : stream_(std::move(socket)), shared_(std::move(shared)) {}

    // Answers the connection's requests; keeps it alive meanwhile.
    static boost::asio::awaitable<void> run(std::shared_ptr<Connection> self);

  private:
    using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

    // Each returns whether the connection stays open.
    boost::asio::awaitable<bool> serve_one();
    boost::asio::awaitable<bool> serve_request(Parser& parser);
    // Makes the connection a WebSocket's. Returns once that has ended.
    boost::asio::awaitable<bool> serve_socket(Parser& parser, const BodyRule& rule,
                                              WebRequest request);
    boost::asio::awaitable<bool> write_answer(std::shared_ptr<PendingAnswer> answer);
    boost::asio::awaitable<bool> refuse(WebError why);
    // Reads the body into the request. Returns why it is refused, if it is.
    boost::asio::awaitable<std::optional<WebError>> read_body(Parser& parser, const BodyRule& rule,
                                                              WebRequest& request);
    // Reads what a refused client still sends, so that it can read why.
    boost::asio::awaitable<void> discard();
    boost::asio::awaitable<bool> write(std::string_view bytes);
    // Looks for the client's leaving while its answer is made.
    void watch(const std::shared_ptr<PendingAnswer>& answer);
    // The head of an answer with a body of that size, or of one in parts.
    std::string head_of(const WebResponse& response, std::optional<size_t> body_bytes) const;

    boost::beast::basic_stream<boost::asio::generic::stream_protocol> stream_;
    std::shared_ptr<WebShared> shared_;
    boost::beast::flat_buffer buffer_;
    // Of the request that is served:
    bool keeps_alive_ = false, is_http_1_0_ = false;
    bool is_head_ = false;  // the answer has no body
};

}  // namespace hark::serve
