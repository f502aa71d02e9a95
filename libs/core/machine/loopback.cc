#include "core/machine/loopback.h"

#include <arpa/inet.h>

namespace hark {

bool is_loopback(const std::string& host) {
    in_addr four{};
    if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    return host == "localhost" || host == "::1" || host == "[::1]";
}

}  // namespace hark
