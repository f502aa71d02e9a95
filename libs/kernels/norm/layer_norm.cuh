// layer_norm of a row by the threads of a block, shared by the kernels that give the same bits.
#pragma once

#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {

// Sums over the first `warps` warps of a block; every thread gets the sum. `partial`: one place per
// warp.
__device__ inline float block_sum(float x, float (&partial)[32], int warps) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_sum(x);
    if (lane == 0 && warp < warps) partial[warp] = x;
    __syncthreads();
    return warp_sum(lane < warps ? partial[lane] : 0.0f);
}

// The largest of a block's x, none negative; every thread gets it. `partial`: one place per warp.
template <int Warps>
__device__ inline float block_max(float x, float (&partial)[Warps]) {
    x = warp_max(x);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
    __syncthreads();
    for (int warp = 0; warp < blockDim.x / 32; ++warp) x = fmaxf(x, partial[warp]);
    return x;
}

__device__ inline void add_values(float& sum, const Pack<float, kPack>& values) {
    for (const float value : values.values) sum += value;
}

__device__ inline void add_squares(float& sum, const Pack<float, kPack>& values) {
    for (const float value : values.values) sum = fmaf(value, value, sum);
}

// Subtracts a row's first value from all of them, which does not change the result: a mean that is
// large compared with the deviation then costs the sums no digits.
template <class X>
__device__ Pack<float, kPack> shifted(const Pack<X, kPack>& from, float origin, float mean = 0) {
    Pack<float, kPack> to;
    for (int v = 0; v < kPack; ++v) to.values[v] = to_f32(from.values[v]) - origin - mean;
    return to;
}

template <class Y>
__device__ void store_norm(Y* to, const Pack<float, kPack>& values, float factor,
                           const Pack<float, kPack>& w, const Pack<float, kPack>& b) {
    Pack<Y, kPack> out;
    for (int v = 0; v < kPack; ++v)
        out.values[v] = from_f32<Y>(fmaf(values.values[v] * factor, w.values[v], b.values[v]));
    store_pack(to, out);
}

// A thread's pack of layer_norm's weight and bias.
struct NormPack {
    Pack<float, kPack> w{}, b{};

    __device__ NormPack(const float* weight, const float* bias, int channels) {
        const int c = threadIdx.x * kPack;
        if (c >= channels) return;
        w = load_pack<kPack>(weight + c);
        b = load_pack<kPack>(bias + c);
    }
};

// y = layer_norm(x) of one row, one pack per thread in the block's first threads; all threads call
// it.
template <class X, class Y>
__device__ void norm_row(Y* y, const X* x, int channels, float eps, const NormPack& of) {
    __shared__ float partial[2][32];
    const int c = threadIdx.x * kPack, warps = (channels + 32 * kPack - 1) / (32 * kPack);
    const bool inside = c < channels;
    Pack<float, kPack> values{};
    const float origin = to_f32(x[0]);
    if (inside) values = shifted(load_pack<kPack>(x + c), origin);
    float sum = 0, squares = 0;
    add_values(sum, values);
    const float mean = block_sum(sum, partial[0], warps) / channels;
    if (inside) {
        for (float& value : values.values) value -= mean;
        add_squares(squares, values);
    }
    const float variance = block_sum(squares, partial[1], warps) / channels;
    if (inside) store_norm(y + c, values, rsqrtf(variance + eps), of.w, of.b);
}

}  // namespace hark::cuda
