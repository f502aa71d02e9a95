// TCP connections whose calls end at a deadline, or by a signal.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hark {

using Deadline = std::chrono::steady_clock::time_point;

inline Deadline deadline_in(std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
}

// A socket's file descriptor.
class TcpSocket {
  public:
    TcpSocket() = default;
    explicit TcpSocket(int fd) : fd_(fd) {}
    TcpSocket(TcpSocket&& other) noexcept : fd_(other.release()) {}
    TcpSocket& operator=(TcpSocket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~TcpSocket();

    int fd() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }

    // Addresses in numbers: of this end, and of the other.
    std::string own_address() const;
    std::string peer_address() const;
    int own_port() const;

    // Throw Error if the connection ends before all bytes, or at the deadline.
    void send(std::span<const std::byte> bytes, Deadline deadline) const;
    void receive(std::span<std::byte> bytes, Deadline deadline) const;

  private:
    int fd_ = -1;
};

// Waits until some of the sockets have something to read (a listener: a connection), or have ended.
// Returns those; none at the deadline. Meanwhile signals that are held back, of ending_signals(),
// have their effect: they end the process.
std::vector<int> wait_readable(const std::vector<int>& sockets, Deadline deadline);

// A listener at HOST's address, at all addresses of IPv4 and IPv6 if it is empty; port "0": any
// that is free. Throws Error with the reason alone.
TcpSocket listen_at(const std::string& host, const std::string& port);
// The next connection of a listener; not open if there is none now.
TcpSocket accept_now(const TcpSocket& listener);
// Tries all of HOST's addresses, which share the time. Throws Error with the last one's reason
// alone.
TcpSocket connect_to(const std::string& host, const std::string& port, Deadline deadline);
// For a connection that is kept: small messages leave at once, and an idle one whose other machine
// does not answer for a minute ends with an error. There is no limit while bytes wait to be taken:
// TCP_USER_TIMEOUT would end the link to a rank that is busy and does not read. socket_links() has
// one.
void keep_connected(const TcpSocket& socket);

// This machine's addresses as others may reach it: the one of the default route first, loopback
// last.
std::vector<std::string> machine_addresses();

}  // namespace hark
