#include <cstring>

#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cuda_gradients.h"
#include "kernels/gradients.h"
#include "kernels/parallel.h"

namespace hark {
namespace {

void check_activation(const char* op, const Tensor& x, Activation f) {
    require(x.rank == 2 && x.dtype == Dtype::f32, op, ": expected x f32 (T, C), found ", x);
    require(f != Activation::none, op, ": expected an activation, found none");
}

}  // namespace

void set_zero(Context& ctx, Tensor x) {
    if (ctx.on_cuda()) return cuda_gradients().set_zero(ctx, x);
    std::memset(x.data, 0, x.bytes());
}

void round_randomly(Context& ctx, Tensor to, Tensor x, uint64_t seed) {
    require(ctx.on_cuda(), "round_randomly: runs on a GPU alone");
    cuda_gradients().round_randomly(ctx, to, x, seed);
}

void activate(Context& ctx, Tensor y, Tensor x, Activation f) {
    if (ctx.on_cuda()) return cuda_gradients().activate(ctx, y, x, f);
    check_activation("activate", x, f);
    check_tensor("activate", "y", y, Dtype::f32, {x.dim(0), x.dim(1)});
    const int64_t columns = x.dim(1);
    const float* from = x.as<float>();
    float* to = y.as<float>();
    parallel_for(ctx.threads, x.dim(0), [&](int64_t t) {
        cpu_kernels().epilogue(to + t * columns, from + t * columns, nullptr, nullptr, columns, f);
    });
}

void activate_backward(Context& ctx, Tensor dx, Tensor dy, Tensor x, Activation f) {
    if (ctx.on_cuda()) return cuda_gradients().activate_backward(ctx, dx, dy, x, f);
    check_activation("activate_backward", x, f);
    check_tensor("activate_backward", "dx", dx, Dtype::f32, {x.dim(0), x.dim(1)});
    check_tensor("activate_backward", "dy", dy, Dtype::f32, {x.dim(0), x.dim(1)});
    const int64_t columns = x.dim(1);
    const float *gradient = dy.as<float>(), *input = x.as<float>();
    float* to = dx.as<float>();
    parallel_for(ctx.threads, x.dim(0), [&](int64_t t) {
        const int64_t at = t * columns;
        cpu_kernels().activate_backward(to + at, gradient + at, input + at, columns, f);
    });
}

}  // namespace hark
