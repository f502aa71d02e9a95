#include "kernels/comm/mpi_library.h"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

// MPI counts in int.
constexpr size_t kMost = size_t{1} << 30;

void check(int status, const char* what) {
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(status, text, &length);
    fail(what, ": ", std::string(text, static_cast<size_t>(length)));
}

// A process that ends early, for example by an Error, must not leave the others waiting: not every
// launcher ends them.
void abort_unfinished(int exit_status, void*) {
    int finished = 0;
    MPI_Finalized(&finished);
    if (!finished) MPI_Abort(MPI_COMM_WORLD, exit_status == 0 ? 1 : exit_status);
}

class World : public Transport {
  public:
    World(int rank, int size, int local_rank) : Transport(rank, size, local_rank) {}

    void exchange(int to, std::span<const std::byte> out, int from,
                  std::span<std::byte> in) override {
        for (size_t at = 0; at < in.size(); at += kMost)
            check(MPI_Irecv(in.data() + at, static_cast<int>(std::min(kMost, in.size() - at)),
                            MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests_.emplace_back()),
                  "MPI_Irecv");
        for (size_t at = 0; at < out.size(); at += kMost)
            check(MPI_Isend(out.data() + at, static_cast<int>(std::min(kMost, out.size() - at)),
                            MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests_.emplace_back()),
                  "MPI_Isend");
        const int status =
            MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
        if (status != MPI_SUCCESS)
            check(status,
                  concat("rank ", rank(), ", to rank ", to, " and from rank ", from).c_str());
    }

    void finish() override { check(MPI_Finalize(), "MPI_Finalize"); }

  private:
    std::vector<MPI_Request> requests_;
};

Transport* begin() {
    int provided = 0, rank = 0, size = 0, local = 0;
    // Any thread may have the links, one at a time: hark-serve's model has one of its own.
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    require(provided >= MPI_THREAD_SERIALIZED,
            "expected an MPI library that any thread may call (MPI_THREAD_SERIALIZED)");
    on_exit(abort_unfinished, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    MPI_Comm machine = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine),
          "MPI_Comm_split_type");
    check(MPI_Comm_rank(machine, &local), "MPI_Comm_rank");
    MPI_Comm_free(&machine);
    return new World(rank, size, local);
}

}  // namespace
}  // namespace hark

HARK_EXPORT int hark_mpi_abi() { return hark::kMpiAbi; }
HARK_EXPORT hark::Transport* hark_mpi_links() { return hark::begin(); }
