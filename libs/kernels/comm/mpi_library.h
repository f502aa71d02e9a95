// libhark-mpi.so: links between processes that mpirun or srun has started (transport.h).
#pragma once

#include "kernels/comm/transport.h"

namespace hark {

// hark_mpi_links(): starts MPI and returns the links between the processes of MPI_COMM_WORLD. Call
// it once.
using MpiLinks = Transport* (*)();

// Increase it with every change of Transport or of this file: a library of another build is
// refused.
inline constexpr int kMpiAbi = 1;

}  // namespace hark
