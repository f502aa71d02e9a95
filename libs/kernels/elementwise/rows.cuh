// Shared by the kernels that move rows: the grid over rows, packs and their conversion.
#pragma once

#include <algorithm>

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

inline constexpr int kPack = 8;  // values that a thread moves at once: 16 bytes of a 16-bit type
inline constexpr int64_t kMostGridY = 65535;

// A grid for rows of `packs` packs: x of a block runs over the packs, y over rows.
struct RowGrid {
    dim3 blocks, threads;

    RowGrid(int64_t rows, int64_t packs) {
        constexpr int64_t kThreads = 256;
        const int64_t across = std::clamp(ceil_div(packs, 32) * 32, int64_t{32}, kThreads);
        const int64_t down = kThreads / across;
        threads = dim3(static_cast<unsigned>(across), static_cast<unsigned>(down));
        blocks = dim3(static_cast<unsigned>(ceil_div(rows, down)));
    }
};

__device__ inline int64_t row_of_thread() { return int64_t{blockIdx.x} * blockDim.y + threadIdx.y; }

// Whether rows of `width` values can be read in packs from these addresses, in all types.
inline bool in_packs(int64_t width, std::initializer_list<const void*> pointers) {
    uintptr_t bits = 0;
    for (const void* pointer : pointers) bits |= reinterpret_cast<uintptr_t>(pointer);
    return width % kPack == 0 && bits % 16 == 0;
}

template <class T, int V>
__device__ inline void store_pack(T* to, const Pack<T, V>& pack) {
    *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

template <class To, class From, int V>
__device__ inline Pack<To, V> convert_pack(const Pack<From, V>& from) {
    Pack<To, V> to;
    for (int v = 0; v < V; ++v) to.values[v] = from_f32<To>(to_f32(from.values[v]));
    return to;
}

// NaN, the result for an index on the device that is out of range.
template <class T, int V>
__device__ inline Pack<T, V> nan_pack() {
    Pack<T, V> pack;
    for (int v = 0; v < V; ++v) pack.values[v] = from_f32<T>(NAN);
    return pack;
}

}  // namespace hark::cuda
