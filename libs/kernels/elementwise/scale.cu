// add_scaled and scale_logits on the GPU.
#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kScaleThreads = 256;

template <class T>
__global__ void __launch_bounds__(kScaleThreads)
    scaled_add_kernel(T* x, const T* y, float scale, int64_t n) {
    pdl_trigger();
    pdl_wait();
    const int64_t i = int64_t{blockIdx.x} * kScaleThreads + threadIdx.x;
    if (i < n) x[i] = from_f32<T>(fmaf(to_f32(y[i]), scale, to_f32(x[i])));
}

__global__ void __launch_bounds__(kScaleThreads)
    scale_kernel(float* x, float scale, float cap, int64_t n) {
    pdl_trigger();
    pdl_wait();
    const int64_t i = int64_t{blockIdx.x} * kScaleThreads + threadIdx.x;
    if (i < n) x[i] = cap > 0 ? cap * tanhf(x[i] * scale / cap) : x[i] * scale;
}

unsigned blocks_of(int64_t n) { return static_cast<unsigned>(ceil_div(n, kScaleThreads)); }

}  // namespace

void add_scaled(Context& ctx, Tensor x, Tensor y, float scale) {
    enter(ctx, {&x, &y});
    const int64_t n = x.size();
    if (n == 0) return;
    with_float_type(x.dtype, [&](auto value) {
        using T = decltype(value);
        pdl_launch(ctx, scaled_add_kernel<T>, blocks_of(n), kScaleThreads, 0,
                   static_cast<T*>(x.data), static_cast<const T*>(y.data), scale, n);
    });
}

void scale_logits(Context& ctx, Tensor x, float scale, float cap) {
    enter(ctx, {&x});
    const int64_t n = x.size();
    if (n > 0)
        pdl_launch(ctx, scale_kernel, blocks_of(n), kScaleThreads, 0, x.as<float>(), scale, cap, n);
}

}  // namespace hark::cuda
