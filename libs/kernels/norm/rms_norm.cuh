// rms_norm of a row by the threads of a block, shared by the kernels that give the same bits.
#pragma once

#include "kernels/norm/layer_norm.cuh"

namespace hark::cuda {

constexpr int kMostRmsThreads = 512;  // with one pack each; wider rows are added in another order

// A thread's weights: packs p * blockDim.x + threadIdx.x of a row.
template <int Packs>
struct RmsWeights {
    Pack<float, kPack> packs[Packs];

    __device__ RmsWeights(const float* weights, int channels) {
        for (int p = 0; p < Packs; ++p) {
            const int c =
                (p * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kPack;
            packs[p] = c < channels ? load_pack<kPack>(weights + c) : Pack<float, kPack>{};
        }
    }
};

// A thread's packs of a row of x, as RmsWeights has them.
template <class X, int Packs>
struct RmsInputs {
    Pack<X, kPack> packs[Packs];

    __device__ RmsInputs(const X* x, int channels) {
#pragma unroll
        for (int p = 0; p < Packs; ++p) {
            const int c =
                (p * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kPack;
            packs[p] = c < channels ? load_pack<kPack>(x + c) : Pack<X, kPack>{};
        }
    }
};

// y = rms_norm(x) of up to Packs packs per thread, at most kMostRmsThreads. The bits do not depend
// on the block's threads. All of them call it.
template <int Packs, class X, class Y>
__device__ void rms_norm_row(Y* y, const RmsInputs<X, Packs>& x, int channels, float eps,
                             const RmsWeights<Packs>& weights) {
    __shared__ float partial[32];
    const int warps = static_cast<int>(blockDim.x) / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
        float squares = 0;
        for (const X value : x.packs[p].values)
            squares = fmaf(to_f32(value), to_f32(value), squares);
        squares = warp_sum(squares);
        if (lane == 0) partial[p * warps + threadIdx.x / 32] = squares;
    }
    __syncthreads();
    const float sum = warp_sum(lane < Packs * warps ? partial[lane] : 0.0f);
    const float factor = rsqrtf(sum / channels + eps);
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
        const int c = (p * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * kPack;
        if (c >= channels) continue;
        Pack<Y, kPack> out;
        for (int v = 0; v < kPack; ++v)
            out.values[v] =
                from_f32<Y>(to_f32(x.packs[p].values[v]) * factor * weights.packs[p].values[v]);
        store_pack(y + c, out);
    }
}

template <int Packs, class X, class Y>
__device__ void rms_norm_row(Y* y, const X* x, int channels, float eps,
                             const RmsWeights<Packs>& weights) {
    rms_norm_row(y, RmsInputs<X, Packs>(x, channels), channels, eps, weights);
}

}  // namespace hark::cuda
