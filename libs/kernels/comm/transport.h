// Transport: bytes between the processes of one run. What is computed with them is in
// communicator.h.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace hark {

class Transport {
  public:
    Transport(int rank, int size, int local_rank) : rank_(rank), size_(size), local_(local_rank) {}
    virtual ~Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    int local_rank() const { return local_; }  // its place among the ranks of its machine

    // Sends `out` to rank `to` and receives `in` from rank `from`, at the same time; an empty one
    // is left out. Between two ranks messages keep their order. Throws Error that names the rank
    // that is gone.
    virtual void exchange(int to, std::span<const std::byte> out, int from,
                          std::span<std::byte> in) = 0;
    // Called by every rank once nothing more will be exchanged. A process of a launcher's that ends
    // without it ends the others, which would wait for it.
    virtual void finish() = 0;

  private:
    int rank_, size_, local_;
};

// Transport among `members` of `all`'s ranks, in rising order, this one among them, which are
// called 0, 1, ... there. They are `all`'s own, which must outlive them: any two ranks must use the
// two in the same order, and it is `all` that finishes.
std::unique_ptr<Transport> sub_transport(Transport& all, std::vector<int> members);

// How many processes the launcher (mpirun, srun) that has started this one has started; 1 without a
// launcher. From the environment: OMPI_COMM_WORLD_SIZE (Open MPI), PMI_SIZE (MPICH, Intel MPI),
// MV2_COMM_WORLD_SIZE (MVAPICH2), SLURM_STEP_NUM_TASKS (srun). Throws Error where that is no
// number.
int launched_processes();

// Transport to the launcher's processes through MPI, by libhark-mpi.so, which is opened only here:
// once in a process, before it has threads. Throws Error if it is not available, and if MPI
// finds another number of processes than the launcher has started.
std::unique_ptr<Transport> mpi_transport();

// Starts `size` copies of this process on this machine, linked by sockets, and returns to each of
// them its links. To the caller itself it returns nothing, once all have ended well; Error names
// the first that has failed, the others having been ended with it. SIGTERM, SIGINT and SIGHUP are
// passed to rank 0; where the ranks have ended by a signal that was sent to all of them, so does
// the caller. To be called before the process has threads.
std::unique_ptr<Transport> spawn_local_ranks(int size);

}  // namespace hark
