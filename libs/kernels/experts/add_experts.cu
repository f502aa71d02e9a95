// add_experts on the GPU.
#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {
namespace {

constexpr int kAddThreads = 256;

template <class T>
__global__ void __launch_bounds__(kAddThreads)
    add_experts_kernel(T* x, const T* y, const float* weights, int64_t size, int64_t channels,
                       int64_t k) {
    pdl_trigger();
    pdl_wait();
    const int64_t i = int64_t{blockIdx.x} * kAddThreads + threadIdx.x;
    if (i >= size) return;
    const int64_t t = i / channels, c = i % channels;
    float sum = 0;
    for (int64_t j = t * k; j < (t + 1) * k; ++j)
        sum = fmaf(weights[j], to_f32(y[j * channels + c]), sum);
    x[i] = from_f32<T>(to_f32(x[i]) + sum);
}

}  // namespace

void add_experts(Context& ctx, Tensor x, Tensor y, Tensor weights) {
    enter(ctx, {&x, &y, &weights});
    const int64_t size = x.size();
    if (size == 0) return;
    with_float_type(x.dtype, [&](auto value) {
        using T = decltype(value);
        pdl_launch(ctx, add_experts_kernel<T>, static_cast<unsigned>(ceil_div(size, kAddThreads)),
                   kAddThreads, 0, static_cast<T*>(x.data), static_cast<const T*>(y.data),
                   static_cast<const float*>(weights.as<float>()), size, x.dim(1), weights.dim(1));
    });
}

}  // namespace hark::cuda
