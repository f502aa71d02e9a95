// Requests and answers, as handlers see them, which know no sockets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/web/form.h"
#include "serve/web/socket.h"
#include "serve/web/web_error.h"

namespace hark::serve {

struct WebRequest {
    std::string method;
    std::string path;  // decoded, without the query
    std::vector<std::pair<std::string, std::string>> query;  // name, value; decoded
    // Headers; of Sec-WebSocket-Protocol what it offers.
    std::string host, origin, content_type, authorization;
    std::vector<std::string> protocols;
    std::string body;  // or, of a form:
    Form form;
};

struct WebResponse {
    int status = 200;
    std::string content_type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers;  // others than type and length
    std::string body;
    // Of an answer in parts: what is sent while there is nothing else, so that no proxy takes the
    // connection for a broken one; empty: nothing.
    std::string pause = "";
};

// Where a handler writes its answer: send(), or begin(), any number of add(), and end(). After the
// client has left all of them have no effect. For the server's thread alone.
class WebAnswer {
  public:
    virtual ~WebAnswer() = default;

    virtual void send(WebResponse response) = 0;
    // An answer in parts; the head's body is its first one.
    virtual void begin(WebResponse head) = 0;
    virtual void add(std::string_view part) = 0;
    virtual void end() = 0;
    // Called once if the client leaves, or is cut off, before the answer's end.
    virtual void when_left(std::function<void()> left) = 0;
};

// What a request's body may be.
struct BodyRule {
    size_t most_bytes = 0;
    bool is_form = false;       // multipart/form-data, whose file is spooled to the disk
    bool is_socket = false;     // no body: the request asks for a WebSocket
    std::string protocol = "";  // of those that it offers, the one that is taken
};

// Answers requests. All calls come from the server's thread and must not wait.
class WebSite {
  public:
    virtual ~WebSite() = default;

    // Told of a request whose head has come. Throws WebError to refuse it before its body is read.
    virtual BodyRule receive(const WebRequest& head) = 0;
    // Throws WebError to refuse the request; then nothing has been written.
    virtual void answer(WebRequest request, std::shared_ptr<WebAnswer> answer) = 0;
    // Takes a client's messages. Throws WebError to refuse the request before it is a WebSocket.
    virtual std::shared_ptr<SocketListener> open(WebRequest request,
                                                 std::shared_ptr<WebSocket> socket) = 0;
    // The answer to what is refused, by the site or by the server.
    virtual WebResponse refusal(const WebError& why) const = 0;
    // From now on only running requests are finished.
    virtual void drain() = 0;
};

}  // namespace hark::serve
