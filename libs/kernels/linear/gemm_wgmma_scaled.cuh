// linear for many rows of e4m3 on Hopper, the epilogue: sums times the scales of their row of x and
// of W, bias, GELU or none, residual.
#pragma once

#include "kernels/linear/gemm_wgmma_epilogue.cuh"

namespace hark::cuda::gemm_wgmma {

// The factors and biases of a tile, in shared memory.
struct TileFactors {
    const float *of_x, *of_w, *bias;
};

__device__ inline float load_one(const float* from) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(shared_address(from)));
    return v;
}

__device__ inline float scaled_value(const Product& args, float sum, float of_x, float of_w,
                                     float bias) {
    const float value = fmaf(__fmul_rn(sum, of_x), of_w, bias);
    return args.gelu ? gelu(value) : value;
}

// The thread's first row in its tile.
__device__ inline int row_in_tile() {
    return threadIdx.x % kGroup / 32 * 16 + threadIdx.x % 32 / 4;
}

// Turns sums into values without the residual.
template <int Parts>
__device__ void finish_sums(const Product& args, int t, float (&sums)[Parts][64],
                            const TileFactors& factors) {
#pragma unroll
    for (int i = 0; i < 32 * Parts; ++i) {
        const int part = i / 32, column = i / 2 % 16 * 8 + 2 * t, half = i % 2;
        const float of_x = load_one(factors.of_x + part * 64 + row_in_tile() + 8 * half);
        const float2 of_w = load_pair(factors.of_w + column),
                     bias = load_pair(factors.bias + column);
        float* const two = &sums[part][i % 32 * 2];
        two[0] = scaled_value(args, two[0], of_x, of_w.x, bias.x);
        two[1] = scaled_value(args, two[1], of_x, of_w.y, bias.y);
    }
}

// Writes a thread's values as Y, 8 neighbours at a time; the residual is read in the same places.
template <class Y, int Parts>
__device__ void write_values_wide(const Product& args, const Corner& at,
                                  const float (&values)[Parts][64]) {
    const Chunks chunks(args, at);
#pragma unroll
    for (int i = 0; i < 8 * Parts; ++i) {
        const int part = i / 8, group = i / 2 % 4, half = i % 2;
        uint32_t words[4] = {};
        if (args.residual) {
            if (chunks.has(i))
                *reinterpret_cast<uint4*>(words) = *reinterpret_cast<const uint4*>(
                    static_cast<const Y*>(args.residual) + chunks.at(i));
            transpose(words);  // is its own inverse
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const float* const two = &values[part][16 * group + 4 * j + 2 * half];
            const Y* const added = reinterpret_cast<const Y*>(&words[j]);
            words[j] = pack<Y>(two[0] + to_f32(added[0]), two[1] + to_f32(added[1]));
        }
        transpose(words);
        if (chunks.has(i))
            *reinterpret_cast<uint4*>(static_cast<Y*>(args.y) + chunks.at(i)) =
                *reinterpret_cast<const uint4*>(words);
    }
}

// The same for any type and alignment of y, one value at a time. Not inlined, since it is rare.
__device__ __noinline__ inline void write_values_any(const Product& args, Corner at, int parts,
                                                     const float* values) {
    for (int i = 0; i < parts * 64; ++i) {
        const int64_t row = at.row + i / 64 * 64 + 8 * (i / 2 % 2);
        const int n = at.n + 8 * (i / 4 % 16) + 2 * at.t + i % 2;
        if (row >= args.rows || n >= args.n) continue;
        const int64_t to = row * args.stride + n;
        const float added = args.residual ? load_any(args.residual, args.y_type, to) : 0.0f;
        store_any(args.y, args.y_type, to, values[i] + added);
    }
}

template <class Y, int Parts>
__device__ void write_scaled(const Product& args, const Corner& at, float (&sums)[Parts][64],
                             const TileFactors& factors) {
    finish_sums(args, at.t, sums, factors);
    if (args.wide) return write_values_wide<Y>(args, at, sums);
    float copies[Parts * 64];  // in memory, as an index may be known at run time only
#pragma unroll
    for (int i = 0; i < Parts * 64; ++i) copies[i] = sums[i / 64][i % 64];
    write_values_any(args, at, Parts, copies);
}

}  // namespace hark::cuda::gemm_wgmma
