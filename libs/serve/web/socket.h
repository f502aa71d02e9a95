// WebSockets, as handlers see them, which know no connections.
#pragma once

#include <string>
#include <string_view>

namespace hark::serve {

// Where a handler writes messages. After the client has left nothing has an effect. For the
// server's thread alone.
class WebSocket {
  public:
    virtual ~WebSocket() = default;

    // Sends a message of text.
    virtual void send(std::string text) = 0;
    // Ends the connection after the messages that were sent, with a code of RFC 6455 and at most
    // 123 bytes that say why.
    virtual void close(int code, std::string reason) = 0;
    // The listener wants more than it did.
    virtual void resume() = 0;
};

// Codes of close().
inline constexpr int kClosedNormally = 1000, kClosedGoingAway = 1001, kClosedPolicy = 1008,
                     kClosedFailure = 1011;

// Told of a client's messages, on the server's thread. No call may wait.
class SocketListener {
  public:
    virtual ~SocketListener() = default;

    virtual void binary(std::string_view bytes) = 0;
    virtual void text(std::string_view text) = 0;
    // A client that has to send something is cut off if nothing comes; one that has to wait is held
    // back by TCP.
    enum class Wants { message, nothing, pause };
    virtual Wants wants() const = 0;
    // The client has left, or is cut off. May be called more than once.
    virtual void left() = 0;
};

}  // namespace hark::serve
