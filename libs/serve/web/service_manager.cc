#include "serve/web/service_manager.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace hark::serve {
namespace {

constexpr int kFirstPassed = 3;

std::string environment_value(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

int socket_option(int fd, int option) {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

}  // namespace

std::optional<PassedSocket> take_passed_socket() {
    const std::string count = environment_value("LISTEN_FDS");
    const bool is_ours = environment_value("LISTEN_PID") == std::to_string(::getpid());
    for (const char* const name : {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}) ::unsetenv(name);
    if (!is_ours || count.empty()) return std::nullopt;
    require(count == "1", "LISTEN_FDS: expected one socket, got ", count);
    PassedSocket passed{.fd = kFirstPassed};
    require(socket_option(passed.fd, SO_ACCEPTCONN) == 1 &&
                socket_option(passed.fd, SO_TYPE) == SOCK_STREAM,
            "LISTEN_FDS: descriptor 3 is no stream socket that takes connections");
    ::fcntl(passed.fd, F_SETFD, FD_CLOEXEC);
    sockaddr_storage at = {};
    socklen_t size = sizeof at;
    require(::getsockname(passed.fd, reinterpret_cast<sockaddr*>(&at), &size) == 0,
            "LISTEN_FDS: descriptor 3 has no address");
    char text[INET6_ADDRSTRLEN] = "";
    if (at.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(at);
        passed.host = ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    } else if (at.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(at);
        passed.host = ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
        passed.is_v6 = true;
    } else {
        require(at.ss_family == AF_UNIX, "LISTEN_FDS: descriptor 3 is neither TCP nor Unix");
        passed.path = reinterpret_cast<const sockaddr_un&>(at).sun_path;
    }
    return passed;
}

void tell_manager(const std::string& state) {
    const std::string path = environment_value("NOTIFY_SOCKET");
    sockaddr_un to = {};
    if (path.empty() || path.size() >= sizeof to.sun_path) return;
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path.data(), path.size());
    if (path.front() == '@') to.sun_path[0] = '\0';  // an abstract one
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    // Nobody is told of a failure: without the message the manager ends the service itself.
    ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size()));
    ::close(fd);
}

}  // namespace hark::serve
