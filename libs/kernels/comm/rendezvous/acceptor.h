// A listener's connections, in the order in which they send something.
#pragma once

#include <vector>

#include "kernels/comm/rendezvous/tcp_socket.h"

namespace hark {

// A connection that sends nothing delays no other one.
class Acceptor {
  public:
    explicit Acceptor(const TcpSocket& listener) : listener_(listener) {}

    // The next connection that has sent something, or was closed. Not open at the deadline, or if
    // one of `others` has something to read or has ended.
    TcpSocket next(Deadline deadline, const std::vector<int>& others = {});

  private:
    const TcpSocket& listener_;
    std::vector<TcpSocket> silent_;  // the oldest first
};

}  // namespace hark
