// A rank's memory for sums, and how kernels of several GPUs write and read it.
#pragma once

#include "kernels/comm/peer_sums.h"
#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// Of every sum: each block has its own counter and flags. They need not all run at once.
inline constexpr int kPeerBlocks = 64, kPeerThreads = 512;

// Where a rank's memory has what, in bytes. What a call writes has two places in turn: a rank that
// has ended a call has received from all others, so all of them have ended the call before it.
struct PeerLayout {
    int64_t line_bytes, part_bytes;  // of one rank's lines, of one part of x
    int64_t lines_at, parts_at, sums_at, end;

    PeerLayout(int size, int64_t line_bytes, int64_t part_bytes)
        : line_bytes(line_bytes),
          part_bytes(part_bytes),
          lines_at(ceil_div(flag(2, 0, 0), 128) * 128),
          parts_at(lines_at + 2 * size * line_bytes),
          sums_at(parts_at + 2 * size * part_bytes),
          end(sums_at + 2 * size * part_bytes) {}

    // Calls of this rank's block so far, 4 bytes.
    static __host__ __device__ int64_t counter(int block) { return block * int64_t{4}; }
    // The newest call in which rank `from`'s block has ended `phase`, 0 or 1; 4 bytes.
    static __host__ __device__ int64_t flag(int phase, int block, int from) {
        return counter(kPeerBlocks + (phase * kPeerBlocks + block) * kMostPeers + from);
    }
};

// A line: 8 bytes of values in two words of 8 bytes, each of which is written and read at once and
// has the call's number too. So a reader that finds the number has the values, and needs no flag.
__device__ inline void store_line(std::byte* to, uint2 values, uint32_t call) {
    const uint64_t high = static_cast<uint64_t>(call) << 32;
    asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(high | values.x),
                 "l"(high | values.y)
                 : "memory");
}

// Whether the host has ended all waits. The flag is read now and then.
class PeerWait {
  public:
    __device__ explicit PeerWait(const int32_t* stop) : stop_(stop) {}

    __device__ bool is_stopped() {
        if (++polls_ % 1024 != 0) return false;
        int32_t stop;
        asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(stop) : "l"(stop_) : "memory");
        return stop != 0;
    }

  private:
    const int32_t* stop_;
    uint32_t polls_ = 0;
};

// The values of a line of this call.
__device__ inline uint2 wait_line(const std::byte* from, uint32_t call, const int32_t* stop) {
    for (PeerWait wait(stop);;) {
        uint64_t a, b;
        asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                     : "=l"(a), "=l"(b)
                     : "l"(from)
                     : "memory");
        if ((a >> 32 == call && b >> 32 == call) || wait.is_stopped())
            return make_uint2(static_cast<uint32_t>(a), static_cast<uint32_t>(b));
    }
}

// Says to a reader on any GPU that what this thread wrote, or knows from its block's barrier, is
// there.
__device__ inline void store_flag(std::byte* to, uint32_t call) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(call) : "memory");
}

__device__ inline void wait_flag(const std::byte* from, uint32_t call, const int32_t* stop) {
    for (PeerWait wait(stop);;) {
        uint32_t found;
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(found) : "l"(from) : "memory");
        if (found == call || wait.is_stopped()) return;
    }
}

}  // namespace hark::cuda
