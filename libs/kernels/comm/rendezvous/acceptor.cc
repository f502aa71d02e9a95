#include "kernels/comm/rendezvous/acceptor.h"

#include <algorithm>

namespace hark {
namespace {

// More silent connections than these cost the oldest its place: a process has few descriptors.
constexpr size_t kMostSilent = 64;

}  // namespace

TcpSocket Acceptor::next(Deadline deadline, const std::vector<int>& others) {
    while (std::chrono::steady_clock::now() < deadline) {
        std::vector<int> sockets = others;
        sockets.push_back(listener_.fd());
        for (const TcpSocket& socket : silent_) sockets.push_back(socket.fd());
        const std::vector<int> ready = wait_readable(sockets, deadline);
        const auto is_ready = [&](const TcpSocket& socket) {
            return std::find(ready.begin(), ready.end(), socket.fd()) != ready.end();
        };
        if (const auto found = std::find_if(silent_.begin(), silent_.end(), is_ready);
            found != silent_.end()) {
            TcpSocket socket = std::move(*found);
            silent_.erase(found);
            return socket;
        }
        if (is_ready(listener_)) {
            if (TcpSocket socket = accept_now(listener_); socket.is_open())
                silent_.push_back(std::move(socket));
            if (silent_.size() > kMostSilent) silent_.erase(silent_.begin());
        } else if (!ready.empty()) {
            break;
        }
    }
    return {};
}

}  // namespace hark
