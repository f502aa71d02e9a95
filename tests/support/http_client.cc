#include "support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace hark::test {
namespace {

int connect_to(const std::string& address) {
    sockaddr_storage at = {};
    socklen_t length = 0;
    if (address.starts_with("unix:")) {
        auto& local = reinterpret_cast<sockaddr_un&>(at);
        local.sun_family = AF_UNIX;
        std::strncpy(local.sun_path, address.c_str() + 5, sizeof local.sun_path - 1);
        length = sizeof local;
    } else {
        auto& tcp = reinterpret_cast<sockaddr_in&>(at);
        tcp.sin_family = AF_INET;
        tcp.sin_port = htons(static_cast<uint16_t>(
            std::strtol(address.substr(address.rfind(':') + 1).c_str(), nullptr, 10)));
        tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        length = sizeof tcp;
    }
    const int fd = ::socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&at), length) != 0)
        throw std::runtime_error("cannot connect to " + address);
    return fd;
}

std::string lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

}  // namespace

std::string request_text(const std::string& method, const std::string& path,
                         const std::string& body, const TestClient::Headers& headers) {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    for (const std::string& header : headers) text += header + "\r\n";
    if (method == "POST") text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
}

TestClient::TestClient(const std::string& address) : socket_(connect_to(address)) {}

TestClient::~TestClient() { leave(); }

void TestClient::leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
}

void TestClient::hang_up() { ::shutdown(socket_, SHUT_RDWR); }

void TestClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return;  // the answer says why
        bytes.remove_prefix(static_cast<size_t>(n));
    }
}

bool TestClient::read_more() {
    char bytes[16384];
    ssize_t n = 0;
    while ((n = ::recv(socket_, bytes, sizeof bytes, 0)) < 0 && errno == EINTR) continue;
    if (n > 0) held_.append(bytes, static_cast<size_t>(n));
    return n > 0;
}

std::string TestClient::read_some() {
    if (held_.empty()) read_more();
    return std::exchange(held_, {});
}

TestReply TestClient::ask(const std::string& method, const std::string& path,
                          const std::string& body, const Headers& headers) {
    send(request_text(method, path, body, headers));
    return receive();
}

TestReply TestClient::receive() {
    TestReply reply;
    size_t end = 0;
    while ((end = held_.find("\r\n\r\n")) == held_.npos)
        if (!read_more()) return reply;
    reply.status = std::atoi(held_.c_str() + std::strlen("HTTP/1.1 "));
    for (size_t at = held_.find("\r\n") + 2; at < end;) {
        const size_t line_end = held_.find("\r\n", at), colon = held_.find(": ", at);
        reply.headers[lower_case(held_.substr(at, colon - at))] =
            held_.substr(colon + 2, line_end - colon - 2);
        at = line_end + 2;
    }
    held_.erase(0, end + 4);
    const auto take = [&](size_t bytes, std::string& to) {
        while (held_.size() < bytes)
            if (!read_more()) return false;
        to += held_.substr(0, bytes);
        held_.erase(0, bytes);
        return true;
    };
    if (!reply.headers.contains("transfer-encoding")) {
        const std::string length = reply.headers["content-length"];
        reply.is_whole = take(std::strtoull(length.c_str(), nullptr, 10), reply.body);
        return reply;
    }
    while (true) {
        size_t line = 0;
        while ((line = held_.find("\r\n")) == held_.npos)
            if (!read_more()) return reply;
        const size_t bytes = std::strtoull(held_.c_str(), nullptr, 16);
        std::string mark;
        if (!take(line + 2, mark) || !take(bytes, reply.body) || !take(2, mark)) return reply;
        if (bytes == 0) break;
    }
    reply.is_whole = true;
    return reply;
}

std::vector<std::string> events_of(const std::string& body) {
    std::vector<std::string> events;
    for (size_t at = 0; at < body.size();) {
        const size_t end = std::min(body.find("\n\n", at), body.size());
        const std::string event = body.substr(at, end - at);
        events.push_back(event.starts_with("data: ") ? event.substr(6) : "?" + event);
        at = end + 2;
    }
    return events;
}

}  // namespace hark::test
