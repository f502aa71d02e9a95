// A connection between two processes that have the same token.
#pragma once

#include <array>
#include <string>

#include "core/error.h"
#include "kernels/comm/rendezvous/tcp_socket.h"

namespace hark {

// At most, for what a listener's connection sends: connections are served one after another.
constexpr std::chrono::seconds kGreetingTimeout(1);
constexpr std::chrono::seconds kMessageTimeout(5);

// The other end has another token.
class WrongToken : public Error {
  public:
    using Error::Error;
};

// Each message bears an HMAC-SHA256 (RFC 2104), by the token, of 32 random bytes of each end, the
// sender's side, the message's number and its text: the token itself is not sent, and no message
// of another connection is taken. The text is not encrypted.
class TrustedSocket {
  public:
    enum class Side : unsigned char { caller, listener };

    TrustedSocket() = default;
    // Exchanges the random bytes. All calls throw Error if the other end is no process of a
    // rendezvous, leaves, or does not answer until the deadline.
    TrustedSocket(TcpSocket socket, Side side, std::string token, Deadline deadline);

    void send(const std::string& text, Deadline deadline);
    // Throws WrongToken, a listener after it has told the caller.
    std::string receive(Deadline deadline);

    const TcpSocket& socket() const { return socket_; }
    TcpSocket take() { return std::move(socket_); }

  private:
    using Mac = std::array<std::byte, 32>;
    Mac mac_of(Side sender, unsigned number, const std::string& text) const;

    TcpSocket socket_;
    Side side_ = Side::caller;
    std::string token_, random_;  // of the caller, then of the listener
    unsigned sent_ = 0, received_ = 0;
};

// Random bytes of the system.
std::string random_bytes(size_t count);

}  // namespace hark
