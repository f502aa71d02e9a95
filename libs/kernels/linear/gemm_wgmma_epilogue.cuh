// linear for many rows and the exact GELU on Hopper, the epilogue: a warpgroup finishes the sums of
// a tile.
#pragma once

#include <climits>

#include "kernels/elementwise/gelu.cuh"
#include "kernels/linear/gemm_wgmma.cuh"

namespace hark::cuda::gemm_wgmma {

template <class T>
__device__ inline uint32_t pack(float low, float high) {
    if constexpr (std::is_same_v<T, __half>) {
        const __half2 pair = __floats2half2_rn(low, high);
        return reinterpret_cast<const uint32_t&>(pair);
    } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
        return reinterpret_cast<const uint32_t&>(pair);
    }
}

// Word j of lane t of a quad becomes word t of lane j.
__device__ inline void transpose(uint32_t (&words)[4]) {
#pragma unroll
    for (int step = 1; step <= 2; step *= 2) {
        const bool upper = threadIdx.x & step;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            if (j & step) continue;
            const uint32_t given = upper ? words[j] : words[j + step];
            const uint32_t got = __shfl_xor_sync(0xffffffff, given, step);
            (upper ? words[j] : words[j + step]) = got;
        }
    }
}

// The thread's first row and the tile's first output. The thread's rows are row lane / 4 of its
// warp's 16 of every 64, and that row + 8; its columns are 8 j + 2 (lane % 4) and the next.
struct Corner {
    int64_t row;
    int n, t;  // t: the lane's place in its quad
};

// The 16 bytes that a thread moves of every 32 columns of its rows: their address, and the numbers
// of rows and columns from the first.
struct Chunks {
    int64_t first, eight_rows;
    int rows, columns;

    __device__ Chunks(const Product& args, const Corner& at)
        : first(at.row * args.stride + at.n + 8 * at.t),
          eight_rows(8 * args.stride),
          rows(static_cast<int>(min(args.rows - at.row, int64_t{INT_MAX}))),
          columns(static_cast<int>(args.n) - at.n - 8 * at.t) {}

    // The i-th: part i / 8 of 64 rows, 32 columns i / 2 % 4, upper or lower row i % 2.
    __device__ bool has(int i) const {
        return i / 8 * 64 + i % 2 * 8 < rows && i / 2 % 4 * 32 < columns;
    }
    __device__ int64_t at(int i) const {
        return first + (i / 8 * 8 + i % 2) * eight_rows + i / 2 % 4 * 32;
    }
};

// Loads two neighbours from shared memory for every use: values kept for all parts of a tile would
// fill the registers.
__device__ inline float2 load_pair(const float* from) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(v.x), "=f"(v.y)
                 : "r"(shared_address(from)));
    return v;
}

// Writes a thread's sums as T: the lanes of a quad exchange values, so that each moves 8
// neighbours.
template <class T, int Parts>
__device__ void write_wide(const Product& args, const Corner& at, const float (&sums)[Parts][64],
                           const float* bias) {
    const Chunks chunks(args, at);
#pragma unroll
    for (int i = 0; i < 8 * Parts; ++i) {
        const int part = i / 8, group = i / 2 % 4, half = i % 2;
        uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int column = 32 * group + 8 * j + 2 * at.t, from = 16 * group + 4 * j + 2 * half;
            const float2 biases = load_pair(bias + column);
            words[j] =
                pack<T>(gelu(sums[part][from] + biases.x), gelu(sums[part][from + 1] + biases.y));
        }
        transpose(words);
        if (chunks.has(i))
            *reinterpret_cast<uint4*>(static_cast<T*>(args.y) + chunks.at(i)) =
                *reinterpret_cast<const uint4*>(words);
    }
}

// The same for any type and alignment of y, one value at a time. Not inlined, since it is rare.
__device__ __noinline__ inline void write_any(const Product& args, Corner at, int parts,
                                              const float* sums, const float* bias) {
    for (int i = 0; i < parts * 64; ++i) {
        const int64_t row = at.row + i / 64 * 64 + 8 * (i / 2 % 2);
        const int column = 8 * (i / 4 % 16) + 2 * at.t + i % 2, n = at.n + column;
        if (row >= args.rows || n >= args.n) continue;
        store_any(args.y, args.y_type, row * args.stride + n, gelu(sums[i] + bias[column]));
    }
}

template <class T, int Parts>
__device__ void write(const Product& args, const Corner& at, const float (&sums)[Parts][64],
                      const float* bias) {
    if (args.wide) return write_wide<T>(args, at, sums, bias);
    float copies[Parts * 64];  // in memory, as an index may be known at run time only
#pragma unroll
    for (int i = 0; i < Parts * 64; ++i) copies[i] = sums[i / 64][i % 64];
    write_any(args, at, Parts, copies, bias);
}

}  // namespace hark::cuda::gemm_wgmma
