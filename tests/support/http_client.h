// A client of HTTP/1.1 that does what a test says, also what no client should.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hark::test {

struct TestReply {
    int status = 0;                              // 0: the connection ended without an answer
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;                            // without the marks of chunks
    bool is_whole = false;                       // its end has come
};

class TestClient {
  public:
    // Connects to "http://127.0.0.1:PORT" or "unix:PATH". Throws if no server is there.
    explicit TestClient(const std::string& address);
    ~TestClient();
    TestClient(const TestClient&) = delete;

    using Headers = std::vector<std::string>;  // "Name: value"
    // Sends a request with a Content-Length, and reads its answer.
    TestReply ask(const std::string& method, const std::string& path, const std::string& body = "",
                  const Headers& headers = {"Content-Type: application/json"});
    TestReply get(const std::string& path, const Headers& headers = {}) {
        return ask("GET", path, "", headers);
    }
    TestReply post(const std::string& path, const std::string& body) {
        return ask("POST", path, body);
    }
    void send(std::string_view bytes);
    TestReply receive();
    // What has come and was not part of an answer, with more that comes; empty at the end.
    std::string read_some();
    // Ends the connection at once.
    void leave();
    // The same while another thread sends.
    void hang_up();

  private:
    bool read_more();

    int socket_ = -1;
    std::string held_;
};

// The requests as client and test need them.
std::string request_text(const std::string& method, const std::string& path,
                         const std::string& body, const TestClient::Headers& headers);

// The data of server-sent events, in order; an event of another form is a failure, as "?...".
std::vector<std::string> events_of(const std::string& body);

}  // namespace hark::test
