// libhark-mpi.so: links between processes that mpirun or srun has started (links.h).
#pragma once

#include "kernels/comm/transport.h"

namespace hark {

// hark_mpi_links(): begins MPI, and gives the links between the processes of MPI_COMM_WORLD. To be
// called once.
using MpiLinks = Transport* (*)();

// Goes up whenever Transport or what stands here changes: a library of another build is refused.
inline constexpr int kMpiAbi = 1;

}  // namespace hark
