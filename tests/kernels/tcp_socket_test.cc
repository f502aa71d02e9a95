// Sockets of --rendezvous.
#include "kernels/comm/rendezvous/tcp_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

using namespace hark;

namespace {

constexpr std::chrono::seconds kSoon(20);

}  // namespace

TEST(TcpSocket, AListenerWithoutAHostHasBothFamilies) {
    const TcpSocket listener = listen_at("", "0");
    const std::string port = std::to_string(listener.own_port());
    EXPECT_EQ(connect_to("127.0.0.1", port, deadline_in(kSoon)).peer_address(), "127.0.0.1");
    const TcpSocket probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 loopback{};
    loopback.sin6_family = AF_INET6;
    loopback.sin6_addr = in6addr_loopback;
    if (::bind(probe.fd(), reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) != 0)
        GTEST_SKIP() << "this machine has no IPv6";
    EXPECT_EQ(connect_to("::1", port, deadline_in(kSoon)).peer_address(), "::1");
}

// A rank that saves or samples does not read for longer than any limit on bytes that wait.
TEST(TcpSocket, AKeptConnectionHasNoLimitForBytesThatWait) {
    const TcpSocket listener = listen_at("127.0.0.1", "0");
    const TcpSocket socket =
        connect_to("127.0.0.1", std::to_string(listener.own_port()), deadline_in(kSoon));
    keep_connected(socket);
    const auto option = [&](int level, int name) {
        int value = -1;
        socklen_t size = sizeof value;
        EXPECT_EQ(::getsockopt(socket.fd(), level, name, &value, &size), 0);
        return value;
    };
    EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
}
