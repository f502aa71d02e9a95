// Hosts that are this machine, whatever its network.
#pragma once

#include <string>

namespace hark {

// Whether the name or address of a host is one of this machine alone: 127.0.0.0/8, ::1, also in
// brackets, or localhost.
bool is_loopback(const std::string& host);

}  // namespace hark
