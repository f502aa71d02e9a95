// The matrix units from compute capability 8.0: asynchronous copies of tiles to shared memory,
// loads of matrices into a warp's registers, and products.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// Rows of channels in shared memory, 16-bit values.
template <class T, int Channels, int Rows>
struct MmaTile {
    static constexpr int kPad = 8;  // at the end of a row: 8 rows of a fragment hit all 32 banks
    T values[Rows][Channels + kPad];
};

// A block of `Threads` starts to copy rows [first, first + Rows) of `from`: row r begins at its
// element offset(r). Rows from `end`, those with an offset below 0 and channels from d become
// zeros.
template <int Threads, class T, int Channels, int Rows, class Offset>
__device__ void start_copy_rows(MmaTile<T, Channels, Rows>& to, const T* from, const Offset& offset,
                                int first, int end, int d) {
    constexpr int kChunk = 8, kChunks = Channels / kChunk;  // of 16 bytes
    for (int i = threadIdx.x; i < Rows * kChunks; i += Threads) {
        const int row = i / kChunks, c = i % kChunks * kChunk;
        const int64_t begin = first + row < end && c < d ? offset(first + row) : -1;
        // The address must be valid even if nothing is copied.
        const T* source = begin >= 0 ? from + begin + c : from;
        __pipeline_memcpy_async(&to.values[row][c], source, 16, begin >= 0 ? 0 : 16);
    }
}

// The same of rows that are `stride` values apart.
template <int Threads, class T, int Channels, int Rows>
__device__ void start_copy(MmaTile<T, Channels, Rows>& to, const T* from, int64_t stride, int first,
                           int end, int d) {
    start_copy_rows<Threads>(
        to, from, [=](int row) { return row * stride; }, first, end, d);
}

// ldmatrix: four 8 x 8 matrices of 16-bit values; each lane gives the address of one row.
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

// c (16, 8) += a (16, 16) b (16, 8), fragments as in PTX's mma.m16n8k16: of c, lane 4 g + t has (g,
// 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <class T>
__device__ inline void mma(T, float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                           uint32_t b0, uint32_t b1) {
    if constexpr (std::is_same_v<T, __half>) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
            "{%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
}

template <class T>
__device__ inline void mma(T, float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    mma(T{}, c, a[0], a[1], a[2], a[3], b0, b1);
}

}  // namespace hark::cuda
