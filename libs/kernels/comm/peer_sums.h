// Sums over the GPUs of one machine: each rank's kernel reads and writes the others' memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/context.h"

namespace hark {

class Communicator;

inline constexpr int kMostPeers = 8;

// What a kernel knows of the ranks.
struct Peers {
    int rank = 0, size = 1;
    std::byte* memory[kMostPeers] = {};  // of each rank, as this GPU addresses it
    const int32_t* stop = nullptr;       // pinned: no kernel waits on once it is not 0
};

// A rank's memory, for the other processes of its machine.
struct PeerAddress {
    std::array<char, 40> machine{};
    std::array<char, 32> gpu{};          // PCI bus id
    std::array<std::byte, 64> memory{};  // CUDA's handle; all 0 if there is none
};

// libhark-cuda.so's part.
struct CudaPeers {
    // Memory for the sums of `size` ranks on the context's GPU, zeroed. Throws OutOfMemory.
    std::shared_ptr<void> (*make_memory)(const Context& ctx, int size);
    // Sets gpu and memory of `address`.
    void (*find)(const Context& ctx, void* memory, PeerAddress& address);
    // Another rank's memory; nullptr if the context's GPU cannot access it.
    std::shared_ptr<void> (*open)(const Context& ctx, const PeerAddress& address);
    // x (n), f32, f16 or bf16, aligned to 16 bytes = the sum of all ranks' x: added in f32 in the
    // order of the ranks, rounded once. All ranks launch the same sums in the same order, each on
    // one stream or in recordings that are replayed there.
    void (*all_reduce)(Context& ctx, const Peers& peers, const Tensor& x);
};
const CudaPeers& cuda_peers();

// The sums of the ranks on one context's stream.
class PeerSums {
  public:
    // Called by all ranks; nullptr if one of them cannot access another's memory.
    static std::unique_ptr<PeerSums> connect(Context& ctx, Communicator& ranks);
    // Ends kernels that wait for other ranks.
    ~PeerSums();
    PeerSums(const PeerSums&) = delete;
    PeerSums& operator=(const PeerSums&) = delete;

    bool belongs_to(const Context& ctx) const;
    // As CudaPeers::all_reduce.
    void all_reduce(Context& ctx, const Tensor& x) { cuda_peers().all_reduce(ctx, peers_, x); }

  private:
    PeerSums(Context& ctx, const Communicator& ranks);

    std::weak_ptr<void> context_;  // its handles
    Arena pinned_;
    int32_t* stop_;                              // Peers::stop
    std::vector<std::shared_ptr<void>> opened_;  // by rank
    std::shared_ptr<void> own_;                  // released first: that waits for all kernels
    Peers peers_;
};

}  // namespace hark
