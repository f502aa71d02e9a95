// A client of WebSockets that does what a test says, also what no client should.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/http_client.h"

namespace hark::test {

struct SocketMessage {
    // The frame's opcode: 1 text, 2 binary, 8 close; 0 where the connection ended without one.
    int opcode = 0;
    std::string data;  // of a close frame its reason
    int code = 0;      // of a close frame
};

class TestSocket {
  public:
    // Asks for a WebSocket; reply() has what the server answered: 101 if it is one.
    TestSocket(const std::string& address, const std::string& target,
               const TestClient::Headers& headers = {})
        : client_(address) {
        TestClient::Headers all = {"Connection: Upgrade", "Upgrade: websocket",
                                   "Sec-WebSocket-Version: 13",
                                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="};
        all.insert(all.end(), headers.begin(), headers.end());
        reply_ = client_.get(target, all);
    }

    const TestReply& reply() const { return reply_; }
    TestClient& client() { return client_; }

    void send(int opcode, std::string_view data) { client_.send(frame(opcode, data)); }
    void send_text(std::string_view text) { send(1, text); }
    void send_sound(std::string_view bytes) { send(2, bytes); }

    // A whole message in a frame, masked with zeros.
    static std::string frame(int opcode, std::string_view data) {
        std::string bytes(1, static_cast<char>(0x80 | opcode));
        const size_t size = data.size();
        if (size < 126) {
            bytes += static_cast<char>(0x80 | size);
        } else {
            const int length = size < 65536 ? 2 : 8;
            bytes += static_cast<char>(0x80 | (length == 2 ? 126 : 127));
            for (int i = length - 1; i >= 0; --i)
                bytes += static_cast<char>(static_cast<uint64_t>(size) >> (8 * i));
        }
        return bytes.append(4, '\0').append(data);
    }

    SocketMessage receive() {
        const std::string head = take(2);
        if (head.size() < 2) return {};
        uint64_t size = static_cast<unsigned char>(head[1]);
        if (size >= 126) {
            const std::string length = take(size == 126 ? 2 : 8);
            size = 0;
            for (const char byte : length) size = size << 8 | static_cast<unsigned char>(byte);
        }
        SocketMessage message{head[0] & 0xf, take(size)};
        if (message.opcode == 8 && message.data.size() >= 2) {
            message.code = static_cast<unsigned char>(message.data[0]) << 8 |
                           static_cast<unsigned char>(message.data[1]);
            message.data.erase(0, 2);
            send(8, std::string{static_cast<char>(message.code >> 8),
                                static_cast<char>(message.code)});
        }
        return message;
    }
    // The messages of text up to the one that closes, each with a line's end; `last` is that one.
    std::string receive_lines(SocketMessage* last = nullptr) {
        std::string lines;
        SocketMessage message;
        while ((message = receive()).opcode == 1) lines += message.data + "\n";
        if (last) *last = message;
        return lines;
    }

  private:
    std::string take(size_t bytes) {
        while (held_.size() < bytes) {
            const std::string more = client_.read_some();
            if (more.empty()) break;
            held_ += more;
        }
        const std::string taken = held_.substr(0, bytes);
        held_.erase(0, taken.size());
        return taken;
    }

    TestClient client_;
    TestReply reply_;
    std::string held_;
};

}  // namespace hark::test
