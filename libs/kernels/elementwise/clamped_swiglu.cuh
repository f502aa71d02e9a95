#pragma once

namespace hark::cuda {

// clamped_swiglu's value of one gate and one up.
__device__ inline float clamped_swiglu(float gate, float up, float slope, float limit) {
    // fminf and fmaxf would replace NaN by the limit.
    const float g = gate > limit ? limit : gate;
    const float u = up > limit ? limit : up < -limit ? -limit : up;
    return (u + 1) * g / (1 + __expf(-slope * g));
}

}  // namespace hark::cuda
