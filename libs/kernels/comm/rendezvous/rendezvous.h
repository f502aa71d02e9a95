// The processes of a run on several machines find one another, without MPI.
#pragma once

#include <memory>

#include "kernels/comm/rendezvous_options.h"
#include "kernels/comm/transport.h"

namespace hark {

// Transport between all ranks, a TCP connection for each pair; nullptr if there is one rank. Every
// process calls it, before it has threads. Throws Error that names the ranks that have not come in
// time, and why this process or another one was refused: another token, another number of ranks,
// another version of hark, a rank that is taken.
std::unique_ptr<Transport> rendezvous_transport(const RendezvousOptions& options);

}  // namespace hark
