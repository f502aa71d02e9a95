// What rungs with tensor cores share: the online softmax of attention over a warp's fragments, and
// memory for tiles of the copy engine.
#pragma once

#include <cuda_bf16.h>

#include <cfloat>
#include <cstdint>

namespace hark::ladder {

constexpr float kScale = 0.125f, kLog2e = 1.4426950408889634f;  // of attention's scores; log2(e)

// Tiles with the 128-byte swizzle begin at a multiple of 1 KiB.
constexpr int kAlignment = 1024;
template <class T>
__device__ T& aligned(unsigned char* memory) {
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(memory));
    return *reinterpret_cast<T*>(memory + (kAlignment - at % kAlignment) % kAlignment);
}

// The online softmax of a warp's 16 queries, of which a lane has two rows: of mma's and wgmma's
// fragments, scores[4 i] and [4 i + 1] are of row lane / 4, the next two of the row 8 below.
struct TwoRows {
    float largest[2] = {-FLT_MAX, -FLT_MAX}, weights[2] = {};

    // Scores become weights. The sums so far are to be multiplied by `factors`.
    template <int N>
    __device__ void weigh(float (&scores)[N], float (&factors)[2]) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float most = largest[row];
#pragma unroll
            for (int i = 0; i < N; i += 4)
                most = fmaxf(most, fmaxf(scores[i + 2 * row], scores[i + 2 * row + 1]));
            most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 1));
            most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 2));
            factors[row] = exp2f((largest[row] - most) * kScale * kLog2e);
            largest[row] = most;
            weights[row] *= factors[row];
#pragma unroll
            for (int i = 0; i < N; i += 4)
#pragma unroll
                for (int j = 2 * row; j < 2 * row + 2; ++j) {
                    scores[i + j] = exp2f((scores[i + j] - most) * kScale * kLog2e);
                    weights[row] += scores[i + j];
                }
        }
    }
    // The sums of weights of whole rows: until then each lane has those of its own keys.
    __device__ void join() {
#pragma unroll
        for (float& weight : weights) {
            weight += __shfl_xor_sync(0xffffffff, weight, 1);
            weight += __shfl_xor_sync(0xffffffff, weight, 2);
        }
    }
};

__device__ inline uint32_t pair(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
}

}  // namespace hark::ladder
