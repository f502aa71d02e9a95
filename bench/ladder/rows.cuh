// What the ladders of norms and of softmax share: sums over blocks and warps, and rows that the
// copy engine brings ahead.
#pragma once

#include "kernels/cuda/hopper.cuh"

namespace hark::ladder {

constexpr int kRowThreads = 256, kRowWarps = kRowThreads / 32;

// combine() of all threads' values, for all threads of a block of kRowThreads.
template <class Combine>
__device__ float of_block(float value, const Combine& combine) {
    __shared__ float parts[kRowWarps];
    for (int step = 16; step > 0; step /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffff, value, step));
    __syncthreads();  // the parts of the call before have been read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < kRowWarps; ++i) value = combine(value, parts[i]);
    return value;
}

// Pack i of a lane is number 32 i + lane of the row at `from`, in global or shared memory.
template <class T, int V, int N>
__device__ void load_row(cuda::Pack<T, V> (&packs)[N], const T* from) {
#pragma unroll
    for (int i = 0; i < N; ++i)
        packs[i] = cuda::load_pack<V>(from + (32 * i + threadIdx.x % 32) * V);
}

// Bytes of the rings of copy_rows().
template <class T, int Width, int Ring>
constexpr int ring_bytes() {
    return kRowWarps * Ring *
           (Width * static_cast<int>(sizeof(T)) + static_cast<int>(sizeof(uint64_t)));
}

// The warps of the grid take the rows of `from` (rows, Width) in turn: use(row, values) with the
// row in shared memory, while the copy engine brings the warp's next Ring - 1 rows.
template <class T, int Width, int Ring, class Use>
__device__ void copy_rows(unsigned char* memory, const T* from, int rows, const Use& use) {
#if HARK_HOPPER_CODE
    using namespace cuda::hopper;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    T* values = reinterpret_cast<T*>(memory) + warp * Ring * Width;
    uint64_t* full =
        reinterpret_cast<uint64_t*>(memory + kRowWarps * Ring * Width * sizeof(T)) + warp * Ring;
    const int first = static_cast<int>(blockIdx.x) * kRowWarps + warp;
    const int stride = static_cast<int>(gridDim.x) * kRowWarps;
    const auto start = [&](int number) {
        const int row = first + number * stride;
        if (lane != 0 || row >= rows) return;
        arrive_expecting(full[number % Ring], Width * sizeof(T));
        copy_bytes(values + number % Ring * Width, from + int64_t{row} * Width, Width * sizeof(T),
                   full[number % Ring]);
    };
    if (lane == 0) {
        for (int i = 0; i < Ring; ++i) init(full[i], 1);
        fence_init();
    }
    __syncwarp();
    for (int i = 0; i + 1 < Ring; ++i) start(i);
    for (int number = 0; first + number * stride < rows; ++number) {
        start(number + Ring - 1);
        wait(full[number % Ring], number / Ring % 2);
        use(first + number * stride, values + number % Ring * Width);
        __syncwarp();  // all lanes have read the row: the next copy may take its place
    }
#endif
}

}  // namespace hark::ladder
