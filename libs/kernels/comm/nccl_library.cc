#include "kernels/comm/nccl_library.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "kernels/runtime/plugin.h"

namespace hark {
namespace {

struct Communicator {
    ncclComm_t comm = nullptr;
    int rank = 0, size = 0;
    // Aborts: finalising would need an agreement with ranks that may be gone.
    ~Communicator() {
        if (comm != nullptr) ncclCommAbort(comm);
    }
};

Communicator& at(void* communicator) { return *static_cast<Communicator*>(communicator); }
cudaStream_t stream_at(void* stream) { return static_cast<cudaStream_t>(stream); }

void check(ncclResult_t status, const char* what, ncclComm_t comm = nullptr) {
    if (status == ncclSuccess) return;
    const char* details = ncclGetLastError(comm);
    fail(what, ": ", ncclGetErrorString(status), details != nullptr && *details ? ": " : "",
         details != nullptr ? details : "");
}

void make_id(std::byte* id) {
    static_assert(sizeof(ncclUniqueId) == kNcclIdBytes);
    ncclUniqueId made;
    check(ncclGetUniqueId(&made), "ncclGetUniqueId");
    std::memcpy(id, &made, sizeof made);
}

std::shared_ptr<void> connect(const std::byte* id, int rank, int size, int device_index) {
    // In a ring the order of the sums depends on the GPUs' places only; in a tree or in the
    // switches (NVLS) NCCL decides it. A value set by the user stays.
    ::setenv("NCCL_ALGO", "Ring", 0);
    ::setenv("NCCL_NVLS_ENABLE", "0", 0);
    const cudaError_t status = cudaSetDevice(device_index);
    require(status == cudaSuccess, "GPU ", device_index, ": ", cudaGetErrorString(status));
    ncclUniqueId shared;
    std::memcpy(&shared, id, sizeof shared);
    auto made = std::make_shared<Communicator>();
    made->rank = rank, made->size = size;
    check(ncclCommInitRank(&made->comm, size, shared, rank), "ncclCommInitRank");
    return made;
}

ncclDataType_t nccl_type(Dtype dtype) {
    if (dtype == Dtype::f16) return ncclHalf;
    return dtype == Dtype::bf16 ? ncclBfloat16 : ncclFloat;
}

void all_reduce(void* communicator, void* stream, void* x, size_t n, Dtype dtype) {
    const Communicator& c = at(communicator);
    check(ncclAllReduce(x, x, n, nccl_type(dtype), ncclSum, c.comm, stream_at(stream)),
          "ncclAllReduce", c.comm);
}

void reduce_scatter(void* communicator, void* stream, float* x, size_t n) {
    const Communicator& c = at(communicator);
    const size_t each = n / static_cast<size_t>(c.size);
    check(ncclReduceScatter(x, x + each * static_cast<size_t>(c.rank), each, ncclFloat, ncclSum,
                            c.comm, stream_at(stream)),
          "ncclReduceScatter", c.comm);
}

void all_gather(void* communicator, void* stream, std::byte* x, size_t bytes) {
    const Communicator& c = at(communicator);
    check(ncclAllGather(x + bytes * static_cast<size_t>(c.rank), x, bytes, ncclUint8, c.comm,
                        stream_at(stream)),
          "ncclAllGather", c.comm);
}

void broadcast(void* communicator, void* stream, std::byte* x, size_t bytes, int root) {
    const Communicator& c = at(communicator);
    check(ncclBroadcast(x, x, bytes, ncclUint8, root, c.comm, stream_at(stream)), "ncclBroadcast",
          c.comm);
}

}  // namespace
}  // namespace hark

HARK_EXPORT int hark_nccl_abi() { return hark::kNcclAbi; }

HARK_EXPORT const hark::NcclOps* hark_nccl_ops() {
    static const hark::NcclOps ops = {.make_id = hark::make_id,
                                      .connect = hark::connect,
                                      .all_reduce = hark::all_reduce,
                                      .reduce_scatter = hark::reduce_scatter,
                                      .all_gather = hark::all_gather,
                                      .broadcast = hark::broadcast};
    return &ops;
}
