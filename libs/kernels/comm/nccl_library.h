// libhark-nccl.so: collectives between GPUs (ranks.h).
#pragma once

#include <cstddef>
#include <memory>

namespace hark {

inline constexpr size_t kNcclIdBytes = 128;

// All throw Error with NCCL's own words. A communicator is one rank's, and dies with the last
// pointer to it.
struct NcclOps {
    // id (kNcclIdBytes): for one rank, from which the others have it.
    void (*make_id)(std::byte* id);
    // Waits for the other ranks.
    std::shared_ptr<void> (*connect)(const std::byte* id, int rank, int size, int device_index);
    // Launched on the stream, in place. n elements in all, floats or bf16; of all_gather `bytes`
    // are each rank's.
    void (*all_reduce)(void* communicator, void* stream, void* x, size_t n, bool bf16);
    void (*reduce_scatter)(void* communicator, void* stream, float* x, size_t n);
    void (*all_gather)(void* communicator, void* stream, std::byte* x, size_t bytes);
    void (*broadcast)(void* communicator, void* stream, std::byte* x, size_t bytes, int root);
};

// Goes up whenever what stands here changes: a library of another build is refused.
inline constexpr int kNcclAbi = 2;

}  // namespace hark
