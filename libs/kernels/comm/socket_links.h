// Transport over sockets that are connected.
#pragma once

#include <memory>
#include <vector>

#include "kernels/comm/transport.h"

namespace hark {

// Transport of rank `rank` over stream sockets, which it closes: sockets[r] leads to rank r, and is
// -1 for this one.
std::unique_ptr<Transport> socket_links(int rank, std::vector<int> sockets, int local_rank);

}  // namespace hark
