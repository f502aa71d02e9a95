// Activations and their slopes for training on the GPU.
#pragma once

#include "kernels/elementwise/gelu.cuh"
#include "kernels/ops.h"

namespace hark::cuda {

inline constexpr float kSlope = 2 * 0.79788456080286536f, kCubic = 0.044715f;

__device__ inline float power_of_e(float x) { return __expf(x); }

// GELU by tanh is x s(2u), u = sqrt(2 / pi) (x + 0.044715 x^3), s the logistic function.
__device__ inline float logistic(float x, float square) {
    return __fdividef(1.0f, 1.0f + power_of_e(-kSlope * x * fmaf(kCubic, square, 1.0f)));
}

template <Activation f>
__device__ inline float value_of(float x) {
    if constexpr (f == Activation::gelu) return gelu(x);
    if constexpr (f == Activation::silu) return x / (1.0f + power_of_e(-x));
    return x * logistic(x, x * x);
}

template <Activation f>
__device__ inline float slope_of(float x) {
    const float square = x * x;
    if constexpr (f == Activation::gelu) {  // P(X <= x), and x times the density
        const float tail = normal_tail(fabsf(x));
        const float density = 0.39894228040143268f * power_of_e(-0.5f * square);
        return fmaf(x, density, x < 0 ? tail : 1.0f - tail);
    }
    if constexpr (f == Activation::silu) {
        const float s = 1.0f / (1.0f + power_of_e(-x));
        return fmaf(x * s, 1.0f - s, s);
    }
    const float s = logistic(x, square);
    return fmaf(x * fmaf(3 * kCubic * kSlope, square, kSlope), s * (1.0f - s), s);
}

}  // namespace hark::cuda
