// What the kernels of few rows that read weights straight from memory share.
#pragma once

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

// Loads 16 bytes that are read once, without filling the L1 cache.
__device__ inline uint4 load_once(const void* from) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

}  // namespace hark::cuda
