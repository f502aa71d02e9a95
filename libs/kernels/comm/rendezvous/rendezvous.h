// The processes of a run on several machines find one another, without MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/comm/rendezvous_options.h"
#include "kernels/comm/transport.h"

namespace hark {

// Transport between all ranks, a TCP connection for each pair; nullptr if there is one rank. Every
// process calls it, before it has threads. A process that waits for some seconds passes to `notice`
// for which ranks. Throws Error that names the ranks that did not connect in time, and why this
// process or another one was refused: another token, another number of ranks, another version of
// hark, a rank that is taken.
std::unique_ptr<Transport> rendezvous_transport(
    const RendezvousOptions& options, const std::function<void(const std::string&)>& notice);

}  // namespace hark
