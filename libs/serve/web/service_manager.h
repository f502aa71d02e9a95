// A service manager such as systemd: the socket that it passes, and what it is told
// (sd_listen_fds(3), sd_notify(3)).
#pragma once

#include <optional>
#include <string>

namespace hark::serve {

// A socket that takes connections.
struct PassedSocket {
    int fd = -1;
    std::string path;    // of a Unix socket; or:
    std::string host;    // the address, and
    bool is_v6 = false;  // its kind
};

// The socket that the environment says was passed; nullopt if there is none. It is no child's.
// Throws Error for several, and for one that takes no connections. Called once.
std::optional<PassedSocket> take_passed_socket();

// Tells the manager "READY=1" or the like, if there is one.
void tell_manager(const std::string& state);

}  // namespace hark::serve
