// The JSON of OpenAI's requests, the fields of a transcript's form and of a query, and the bytes of
// a connection: requests, and the messages of a WebSocket.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "fuzz/target.h"
#include "serve/openai/errors.h"
#include "serve/openai/live_answer.h"
#include "serve/openai/requests.h"
#include "serve/openai/transcripts.h"
#include "serve/web/connection.h"
#include "serve/web/paths.h"
#include "text/utf8.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

using namespace hark;
using namespace hark::fuzz;

// A frame whose mask changes nothing.
static std::string socket_seed(int head, const std::string& data) {
    const std::string begin{static_cast<char>(head), static_cast<char>(0x80 | data.size())};
    return begin + std::string(4, '\0') + data;
}

static std::vector<std::string> web_requests_seeds() {
    return {
        R"({"model":"m","messages":[{"role":"developer","content":[{"type":"text","text":"a"}]},
            {"role":"user","content":"b"}],"tools":[{"type":"function","function":{"name":"f"}}],
            "tool_choice":"auto","parallel_tool_calls":false,"stream":true,
            "stream_options":{"include_usage":true},"n":2,"seed":1,"stop":["x"],"logprobs":true,
            "top_logprobs":3,"response_format":{"type":"json_object"},"max_completion_tokens":5,
            "chat_template_kwargs":{"a":1},"reasoning_effort":"low","user":"u"})",
        R"({"model":"m","prompt":["a","b"],"echo":true,"best_of":1,"suffix":"","logprobs":null})",
        R"({"model":"m","prompt":"a","best_of":3})",
        R"({"model":"m","prompt":"a","stream":true,"echo":true,"logprobs":1})",
        R"({"model":"m","prompt":["a","b"],"n":100})",
        R"({"model":"m","prompt":[[1,2],[3]],"logprobs":2,"temperature":0.5,"max_tokens":3})",
        R"({"model":"m","input":["a"],"encoding_format":"base64","dimensions":3})",
        R"({"model":"m","tokens":[1,2]})",
        R"({"model":"m","prompt":"a","add_special_tokens":false})",
        "model\nm\nlanguage\nGerman\ntemperature\n0.2\nresponse_format\nverbose_json\n"
        "timestamp_granularities[]\nword\nstream\nfalse\nvad_filter\ntrue\nprompt\nx",
        "model\nm\nlanguage\nde\nresponse_format\nsrt",
        "model\nm\nresponse_format\ntext\nvad_filter\nfalse\nuser\nu",
        R"({"model":"m","messages":[{"role":"user","content":"b"}],"tool_choice":"required",
            "tools":[{"type":"function","function":{"name":"f","parameters":{}}}]})",
        R"({"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}],
            "tools":[],"tool_choice":"none","documents":[{"text":"a"}]})",
        "/v1/audio/live?model=m&language=de&rate=8000",
        "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3;x=y\r\nabc\r\n0\r\n\r\nGET /a%20b?c=d HTTP/1.1\r\nOrigin: http://a\r\n\r\n",
        socket_seed(0x82, "abcd") + socket_seed(0x02, "ab") + socket_seed(0x80, "cd") +
            socket_seed(0x89, "ping") + socket_seed(0x81, "end") + socket_seed(0x88, "\x03\xe8x")};
}

namespace {

// A refusal is a whole answer that names a status of the client's.
template <class Read>
void refused_or_read(const Read& read) {
    try {
        read();
    } catch (const serve::WebError& why) {
        const serve::WebResponse response = serve::error_response(why);
        if (why.status != 400 || !nlohmann::json::accept(response.body)) std::abort();
    }
}

// Of a segment with a word, which say the text.
serve::Transcript transcript(std::string_view text) {
    whisper::Segment segment;
    segment.end = 1;
    segment.text = replace_invalid(text);
    segment.language = "en";
    segment.words.emplace().push_back({.text = segment.text, .start = 0, .end = 1});
    return {segment.text, "en", 1, {segment}};
}

void read_fields(std::string_view text) {
    serve::Form form;
    form.file = std::make_shared<serve::SpooledFile>();
    std::vector<std::string> lines(1);
    for (const char c : text) {
        if (c == '\n')
            lines.emplace_back();
        else
            lines.back() += c;
    }
    for (size_t i = 0; i + 1 < lines.size(); i += 2)
        form.fields.emplace_back(lines[i], lines[i + 1]);
    for (const char* task : {"transcribe", "translate"})
        refused_or_read([&] {
            const serve::AudioQuery query = serve::read_audio_query(form, task);
            if (query.model.empty() || !(query.options.temperature >= 0)) std::abort();
            const serve::WebResponse answer = serve::transcript_response(query, transcript(text));
            const bool is_json = query.format.ends_with("json");
            if (is_json && !nlohmann::json::accept(answer.body)) std::abort();
        });
}

void read_query(const std::string& text) {
    const auto query = serve::query_of(text);
    refused_or_read([&] {
        const serve::LiveQuery live = serve::read_live_query(query);
        if (live.model.empty() || live.rate < 4000 || live.rate > 192000) std::abort();
    });
    if (serve::percent_decoded(text).size() > text.size()) std::abort();
    if (serve::path_of(text).size() > text.size()) std::abort();
    if (!serve::is_local_host(text + ".localhost:1")) std::abort();
    if (serve::is_own_origin("a://" + text, text) == text.empty()) std::abort();
}

// Takes all requests, and answers messages.
class AnyClient : public serve::WebSite, public serve::SocketListener {
  public:
    serve::BodyRule receive(const serve::WebRequest& head) override {
        serve::BodyRule rule{.most_bytes = 1000};
        rule.is_form = head.content_type.starts_with("multipart/");
        rule.is_socket = head.path == "/socket";
        return rule;
    }
    void answer(serve::WebRequest request, std::shared_ptr<serve::WebAnswer> answer) override {
        if (request.body.size() > 1000) std::abort();
        answer->send({.body = request.path});
    }
    std::shared_ptr<serve::SocketListener> open(serve::WebRequest,
                                                std::shared_ptr<serve::WebSocket> socket) override {
        socket_ = std::move(socket);
        return {std::shared_ptr<void>(), this};
    }
    serve::WebResponse refusal(const serve::WebError& why) const override {
        return serve::error_response(why);
    }
    void drain() override {}

    void binary(std::string_view bytes) override {
        if (bytes.size() > size_t{1} << 20) std::abort();
        socket_->send("line");
    }
    void text(std::string_view text) override {
        if (text == "end") socket_->close(serve::kClosedNormally, "");
    }
    Wants wants() const override { return Wants::message; }
    void left() override {}

  private:
    std::shared_ptr<serve::WebSocket> socket_;
};

// A client that sends a request, which opens a WebSocket, waits for its answer, and sends the rest.
void connect_and_send(std::string_view request, std::string_view rest) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    boost::asio::io_context io{1};
    AnyClient client;
    const auto shared = std::make_shared<serve::WebShared>();
    shared->site = &client;
    bool is_over = false;
    const auto connection = std::make_shared<serve::Connection>(
        serve::Connection::Socket(io, boost::asio::local::stream_protocol(), ends[0]), shared);
    boost::asio::co_spawn(
        io,
        [&]() -> boost::asio::awaitable<void> {
            co_await serve::Connection::run(connection);
            is_over = true;
        },
        boost::asio::detached);
    const bool opens_socket = !request.empty();
    bool is_answered = !opens_socket;
    char read[4096];
    while (!is_over) {
        std::string_view& bytes = request.empty() && is_answered ? rest : request;
        const ssize_t n = ::send(ends[1], bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
        if ((is_answered && rest.empty()) || (n < 0 && errno == EPIPE))
            ::shutdown(ends[1], SHUT_WR);
        while (io.poll_one() > 0) continue;
        for (ssize_t m; (m = ::recv(ends[1], read, sizeof read, MSG_DONTWAIT)) > 0;) {
            const std::string_view answer(read, static_cast<size_t>(m));
            if (!std::exchange(is_answered, true) && !answer.starts_with("HTTP/1.1 101 "))
                std::abort();
        }
    }
    ::close(ends[1]);
}

}  // namespace

static int web_requests_input(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    refused_or_read([&] {
        const serve::TextQuery chat = serve::read_chat(text);
        if (chat.prompt.settings.over({}, 0).samples > 128) std::abort();
    });
    refused_or_read([&] {
        const serve::TextQuery completion = serve::read_completion(text);
        if (completion.texts.empty() || completion.max_tokens != 16) std::abort();
        for (const serve::TextOrIds& one : completion.texts)
            if (one.ids && one.ids->empty()) std::abort();
    });
    refused_or_read([&] { serve::read_embedding(text); });
    refused_or_read([&] { serve::read_tokenize(text); });
    refused_or_read([&] { serve::read_detokenize(text); });
    read_fields(text);
    read_query(text);
    connect_and_send("", text);
    connect_and_send(
        "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        text);
    return 0;
}

static const hark::fuzz::Target kWebRequests{"web_requests", web_requests_seeds,
                                             web_requests_input};
