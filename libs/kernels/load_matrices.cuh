// ldmatrix: what the matrix units take, from shared memory into a warp's registers.
#pragma once

#include <cstdint>

namespace hark::cuda {

// Four 8 x 8 matrices of 16-bit values from shared memory; each lane gives the address of one row.
template <bool Transposed>
__device__ inline void load_matrices(uint32_t (&to)[4], const void* row) {
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
    if constexpr (Transposed) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
    }
}

}  // namespace hark::cuda
