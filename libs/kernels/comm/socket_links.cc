#include "kernels/comm/socket_links.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace hark {
namespace {

constexpr int kCheckMs = 10'000;
// TCP probes a receiver that does not read every 2 minutes or more often, and each probe is
// acknowledged: one of them may be lost.
constexpr unsigned kLongestSilenceMinutes = 5;

class SocketLinks : public Transport {
  public:
    SocketLinks(int rank, std::vector<int> sockets, int local_rank)
        : Transport(rank, static_cast<int>(sockets.size()), local_rank),
          sockets_(std::move(sockets)) {}
    ~SocketLinks() override {
        for (const int socket : sockets_)
            if (socket >= 0) ::close(socket);
    }

    void exchange(int to, std::span<const std::byte> out, int from,
                  std::span<std::byte> in) override {
        while (!out.empty() || !in.empty()) {
            pollfd ready[2] = {{out.empty() ? -1 : at(to), POLLOUT, 0},
                               {in.empty() ? -1 : at(from), POLLIN, 0}};
            const int count = ::poll(ready, 2, kCheckMs);
            if (count < 0 && errno != EINTR) fail("poll: ", std::strerror(errno));
            if (count == 0) {
                if (!out.empty()) expect_acknowledgements(to);
                if (!in.empty()) expect_acknowledgements(from);
            }
            if (ready[0].revents != 0)
                out = out.subspan(
                    moved(to, ::send(at(to), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT)));
            if (ready[1].revents == 0) continue;
            const ssize_t size = ::recv(at(from), in.data(), in.size(), MSG_DONTWAIT);
            if (size == 0) gone(from);
            in = in.subspan(moved(from, size));
        }
    }

    // Waits until all ranks are here; throws Error if one has ended before.
    void finish() override {
        std::byte token{};
        for (int k = 1; k < size(); k *= 2)
            exchange((rank() + k) % size(), std::span<const std::byte>(&token, 1),
                     (rank() + size() - k) % size(), std::span(&token, 1));
    }

  private:
    int at(int rank) const { return sockets_[static_cast<size_t>(rank)]; }
    [[noreturn]] static void gone(int rank) {
        fail("rank ", rank, " has ended, and the run cannot continue without it");
    }
    // Throws Error if a TCP connection's other machine is silent. A process that is busy is no
    // failure: its machine acknowledges what it does not read.
    void expect_acknowledgements(int rank) const {
        tcp_info info{};
        socklen_t size = sizeof info;
        if (::getsockopt(at(rank), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;  // no TCP
        require(info.tcpi_last_ack_recv < kLongestSilenceMinutes * 60'000, "link to rank ", rank,
                ": its machine has not answered for ", kLongestSilenceMinutes, " minutes");
    }
    static size_t moved(int peer, ssize_t count) {
        if (count >= 0) return static_cast<size_t>(count);
        if (errno == EPIPE || errno == ECONNRESET) gone(peer);
        require(errno == EAGAIN || errno == EINTR, "link to rank ", peer, ": ",
                std::strerror(errno));
        return 0;
    }

    std::vector<int> sockets_;
};

}  // namespace

std::unique_ptr<Transport> socket_links(int rank, std::vector<int> sockets, int local_rank) {
    return std::make_unique<SocketLinks>(rank, std::move(sockets), local_rank);
}

}  // namespace hark
