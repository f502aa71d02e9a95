// Transport: bytes between the processes of one run. communicator.h computes with them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace hark {

class Transport {
  public:
    Transport(int rank, int size, int local_rank) : rank_(rank), size_(size), local_(local_rank) {}
    virtual ~Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    int local_rank() const { return local_; }  // place among the ranks of its machine

    // Sends `out` to rank `to` and receives `in` from rank `from` at the same time; an empty span
    // is skipped. Messages between two ranks keep their order. Throws Error that names a rank that
    // is gone.
    virtual void exchange(int to, std::span<const std::byte> out, int from,
                          std::span<std::byte> in) = 0;
    // Called by every rank after the last exchange. If a launcher's process ends without it, it
    // ends the others, which would wait for it.
    virtual void finish() = 0;

  private:
    int rank_, size_, local_;
};

// Transport among `members` of `all`'s ranks, which are in rising order and include this one. There
// they are the ranks 0 to size - 1. They use `all`, which must outlive them: any two ranks must use
// the two in the same order, and `all` is the one to finish.
std::unique_ptr<Transport> sub_transport(Transport& all, std::vector<int> members);

// What the launcher (mpirun, srun) of this process says of it.
struct Launched {
    int rank, size;
};

// Read from OMPI_COMM_WORLD_RANK and _SIZE (Open MPI), PMI_ (MPICH, Intel MPI), MV2_COMM_WORLD_
// (MVAPICH2) or SLURM_PROCID and SLURM_STEP_NUM_TASKS (srun). None without a launcher. Throws Error
// if a value is not a number, or the rank is not below the size.
std::optional<Launched> launched_place();

// Number of processes that the launcher has started; 1 without one. Throws as launched_place().
int launched_processes();

// Transport to the launcher's processes through MPI. Opens libhark-mpi.so: once per process, before
// it has threads. Throws Error if the library is not available or MPI finds another number of
// processes than the launcher started.
std::unique_ptr<Transport> mpi_transport();

// Ranks of spawn_local_ranks() have failed. `alike`: all with the same exit status, and each has
// said why.
class RanksFailed : public Error {
  public:
    RanksFailed(const std::string& message, bool alike) : Error(message), alike(alike) {}
    bool alike;
};

// Starts `size` copies of this process on this machine, linked by sockets, and returns its links to
// each copy. Call it before the process has threads. The caller gets nullptr once all copies have
// ended well. If one fails, the others are ended and RanksFailed names the first failure. SIGTERM,
// SIGINT and SIGHUP are passed to rank 0. If all ranks end by a signal sent to all, or rank 0 by
// SIGPIPE, so does the caller.
std::unique_ptr<Transport> spawn_local_ranks(int size);

}  // namespace hark
