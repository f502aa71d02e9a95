#include "kernels/comm/rendezvous/tcp_socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include "core/cli/ending_signal.h"
#include "core/error.h"

namespace hark {
namespace {

using Address = sockaddr_storage;

std::string numeric(const sockaddr* address, socklen_t length) {
    char host[NI_MAXHOST] = "";
    const int status =
        ::getnameinfo(address, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
    require(status == 0, "getnameinfo: ", ::gai_strerror(status));
    const std::string name = host;
    constexpr std::string_view kMapped = "::ffff:";  // IPv4 on a socket of IPv6
    return name.starts_with(kMapped) && name.find('.') != name.npos ? name.substr(kMapped.size())
                                                                    : name;
}

// `end`: getsockname or getpeername.
template <class End>
Address address_at(int fd, const End& end) {
    Address address{};
    socklen_t length = sizeof address;
    const int status = end(fd, reinterpret_cast<sockaddr*>(&address), &length);
    require(status == 0, "socket: ", std::strerror(errno));
    return address;
}

std::string numeric(const Address& address) {
    return numeric(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

int milliseconds_until(Deadline deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 1'000'000'000));
}

// Waits for `events` on any of them; false at the deadline.
bool wait_for(std::vector<pollfd>& sockets, Deadline deadline) {
    sigset_t mask, ending = ending_signals();
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (sigismember(&ending, signal)) sigdelset(&mask, signal);
    while (true) {
        const int left = milliseconds_until(deadline);
        const timespec timeout = {left / 1000, left % 1000 * 1'000'000L};
        const int ready = ::ppoll(sockets.data(), sockets.size(), &timeout, &mask);
        require(ready >= 0 || errno == EINTR, "poll: ", std::strerror(errno));
        if (ready > 0) return true;
        if (std::chrono::steady_clock::now() >= deadline) return false;
    }
}

bool wait_for(int fd, short events, Deadline deadline) {
    std::vector<pollfd> one = {{fd, events, 0}};
    return wait_for(one, deadline);
}

// Calls move(done) until `size` bytes have moved.
template <class Move>
void move_all(int fd, size_t size, short events, Deadline deadline, const Move& move) {
    for (size_t done = 0; done < size;) {
        const ssize_t count = move(done);
        if (count > 0) {
            done += static_cast<size_t>(count);
            continue;
        }
        require(count < 0, "the connection was closed");
        require(errno == EAGAIN || errno == EINTR, std::strerror(errno));
        require(wait_for(fd, events, deadline), "no answer in time");
    }
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

AddressList addresses_of(const std::string& host, const std::string& port, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* found = nullptr;
    const int status =
        ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
    require(status == 0, ::gai_strerror(status));
    return {found, ::freeaddrinfo};
}

// Calls open(socket, address), which returns an error's text or an empty one, until one works.
template <class Open>
TcpSocket first_that_opens(const std::string& host, const std::string& port, int flags,
                           const Open& open) {
    std::string why;
    const AddressList list = addresses_of(host, port, flags);
    for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
        TcpSocket socket(
            ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
        const std::string error =
            socket.is_open() ? open(socket.fd(), at) : std::string(std::strerror(errno));
        if (error.empty()) return socket;
        why = error;
    }
    fail(why);
}

std::string error_of(bool holds) { return holds ? "" : std::strerror(errno); }

}  // namespace

TcpSocket::~TcpSocket() {
    if (fd_ >= 0) ::close(fd_);
}

std::string TcpSocket::own_address() const { return numeric(address_at(fd_, ::getsockname)); }
std::string TcpSocket::peer_address() const { return numeric(address_at(fd_, ::getpeername)); }

int TcpSocket::own_port() const {
    const Address address = address_at(fd_, ::getsockname);
    return ntohs(address.ss_family == AF_INET6
                     ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                     : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void TcpSocket::send(std::span<const std::byte> bytes, Deadline deadline) const {
    move_all(fd_, bytes.size(), POLLOUT, deadline, [&](size_t done) {
        return ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
}

void TcpSocket::receive(std::span<std::byte> bytes, Deadline deadline) const {
    move_all(fd_, bytes.size(), POLLIN, deadline, [&](size_t done) {
        return ::recv(fd_, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
    });
}

std::vector<int> wait_readable(const std::vector<int>& sockets, Deadline deadline) {
    std::vector<pollfd> all;
    for (const int fd : sockets) all.push_back({fd, POLLIN, 0});
    std::vector<int> ready;
    if (!wait_for(all, deadline)) return ready;
    for (const pollfd& one : all)
        if (one.revents != 0) ready.push_back(one.fd);
    return ready;
}

TcpSocket listen_at(const std::string& host, const std::string& port) {
    if (host.empty()) {
        try {
            return listen_at("::", port);  // has the addresses of IPv4 too
        } catch (const Error&) {
            return listen_at("0.0.0.0", port);
        }
    }
    return first_that_opens(host, port, AI_PASSIVE, [](int fd, const addrinfo* at) {
        const int yes = 1, no = 0;
        ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (at->ai_family == AF_INET6) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        return error_of(::bind(fd, at->ai_addr, at->ai_addrlen) == 0 &&
                        ::listen(fd, SOMAXCONN) == 0);
    });
}

TcpSocket accept_now(const TcpSocket& listener) {
    TcpSocket socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // ECONNABORTED: it was closed before it was accepted.
    require(socket.is_open() || errno == EAGAIN || errno == EINTR || errno == ECONNABORTED,
            "accept: ", std::strerror(errno));
    return socket;
}

TcpSocket connect_to(const std::string& host, const std::string& port, Deadline deadline) {
    return first_that_opens(host, port, 0, [&](int fd, const addrinfo* at) -> std::string {
        if (::connect(fd, at->ai_addr, at->ai_addrlen) == 0) return "";
        if (errno != EINPROGRESS) return std::strerror(errno);
        int left = 0;  // of the addresses
        for (const addrinfo* each = at; each != nullptr; each = each->ai_next) ++left;
        const Deadline now = std::chrono::steady_clock::now();
        if (!wait_for(fd, POLLOUT, now + (deadline - now) / left)) return "no answer in time";
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        return error == 0 ? "" : std::strerror(error);
    });
}

void keep_connected(const TcpSocket& socket) {
    const auto set = [&](int level, int name, int value) {
        const int status = ::setsockopt(socket.fd(), level, name, &value, sizeof value);
        require(status == 0, "setsockopt: ", std::strerror(errno));
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 20);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

std::vector<std::string> machine_addresses() {
    std::vector<std::string> first, loopback;
    ifaddrs* list = nullptr;
    const int status = ::getifaddrs(&list);
    require(status == 0, "getifaddrs: ", std::strerror(errno));
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || !(at->ifa_flags & IFF_UP)) continue;
        const int family = at->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        const std::string name =
            numeric(at->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        // A link-local address has another interface's name on another machine.
        if (name.find('%') != name.npos) continue;
        (at->ifa_flags & IFF_LOOPBACK ? loopback : first).push_back(name);
    }
    // Connecting a datagram socket sends nothing: it only chooses the route. The address is one for
    // documents (RFC 5737), which no network has.
    const TcpSocket route(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(9);
    there.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1
    if (route.is_open() &&
        ::connect(route.fd(), reinterpret_cast<sockaddr*>(&there), sizeof there) == 0) {
        const std::string own = route.own_address();
        std::stable_partition(first.begin(), first.end(),
                              [&](const std::string& name) { return name == own; });
    }
    first.insert(first.end(), loopback.begin(), loopback.end());
    return first;
}

}  // namespace hark
