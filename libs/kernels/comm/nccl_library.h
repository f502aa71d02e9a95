// libhark-nccl.so: collectives between GPUs (communicator.h).
#pragma once

#include <cstddef>
#include <memory>

#include "core/tensor.h"

namespace hark {

inline constexpr size_t kNcclIdBytes = 128;

// All throw Error with NCCL's message. A communicator belongs to one rank and is destroyed with the
// last pointer to it.
struct NcclOps {
    // Makes the id (kNcclIdBytes); called by one rank, which sends it to the others.
    void (*make_id)(std::byte* id);
    // Waits for the other ranks.
    std::shared_ptr<void> (*connect)(const std::byte* id, int rank, int size, int device_index);
    // Launched on the stream, in place. n elements in all, of f32, or of f16 or bf16 for
    // all_reduce. all_gather: `bytes` of each rank.
    void (*all_reduce)(void* communicator, void* stream, void* x, size_t n, Dtype dtype);
    void (*reduce_scatter)(void* communicator, void* stream, float* x, size_t n);
    void (*all_gather)(void* communicator, void* stream, std::byte* x, size_t bytes);
    void (*broadcast)(void* communicator, void* stream, std::byte* x, size_t bytes, int root);
};

// Increase it with every change of this file: a library of another build is refused.
inline constexpr int kNcclAbi = 3;

}  // namespace hark
