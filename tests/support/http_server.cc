#include "support/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace hark::test {
namespace {

// Everything up to the empty line after the headers.
std::string read_head(int connection) {
    std::string head;
    char piece[4096];
    while (head.find("\r\n\r\n") == head.npos) {
        const ssize_t got = ::recv(connection, piece, sizeof piece, 0);
        if (got <= 0) return "";
        head.append(piece, static_cast<size_t>(got));
    }
    return head;
}

HttpRequest parse(const std::string& head) {
    HttpRequest request;
    std::istringstream lines(head);
    lines >> request.method >> request.path;
    const auto take = [](const std::string& line, const std::string& header, std::string& value) {
        if (line.starts_with(header))
            value = line.substr(header.size(), line.find('\r') - header.size());
    };
    for (std::string line; std::getline(lines, line);) {
        take(line, "Range: ", request.range);
        take(line, "If-Range: ", request.if_range);
        take(line, "Authorization: ", request.authorization);
    }
    return request;
}

void send_all(int connection, const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
        const ssize_t put =
            ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (put <= 0) return;  // the client has gone
        sent += static_cast<size_t>(put);
    }
}

}  // namespace

HttpServer::HttpServer(Answer answer) : answer_(std::move(answer)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 || ::bind(socket_, generic, size) || ::listen(socket_, 16) ||
        ::getsockname(socket_, generic, &size))
        throw std::runtime_error("cannot listen on loopback");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
    ending_ = true;
    thread_.join();
    ::close(socket_);
}

std::string HttpServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

std::vector<HttpRequest> HttpServer::requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
}

void HttpServer::serve() {
    while (!ending_) {
        pollfd ready = {socket_, POLLIN, 0};
        if (::poll(&ready, 1, 20) <= 0) continue;
        const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0) continue;
        converse(connection);
        ::close(connection);
    }
}

void HttpServer::converse(int connection) {
    const std::string head = read_head(connection);
    if (head.empty()) return;
    const HttpRequest request = parse(head);
    {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
    }
    HttpResponse response = answer_(request);
    response.headers.try_emplace("Content-Length", std::to_string(response.body.size()));
    std::string text =
        "HTTP/1.1 " + std::to_string(response.status) + " x\r\nConnection: close\r\n";
    for (const auto& [name, value] : response.headers)
        if (!value.empty()) text += name + ": " + value + "\r\n";
    text += "\r\n";
    if (request.method != "HEAD") text += response.body.substr(0, response.cut);
    send_all(connection, text);
    ::shutdown(connection, SHUT_WR);
    // What the client still sends is taken, or closing would take back what it has not read.
    char rest[256];
    while (::recv(connection, rest, sizeof rest, 0) > 0) {
    }
}

HttpResponse in_parts(const HttpRequest& request, const std::string& body) {
    HttpResponse response;
    response.body = body;
    if (!request.range.starts_with("bytes=")) return response;
    const size_t begin = std::strtoull(request.range.c_str() + 6, nullptr, 10);
    response.status = 206;
    response.body = body.substr(std::min(begin, body.size()));
    response.headers["Content-Range"] = "bytes " + std::to_string(begin) + "-" +
                                        std::to_string(body.size() - 1) + "/" +
                                        std::to_string(body.size());
    return response;
}

}  // namespace hark::test
