#include <algorithm>

#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/gradients.h"
#include "kernels/linear/product.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void rms_norm(Context& ctx, Tensor y, Tensor x, Tensor w, float eps) {
    check_normed("rms_norm", y, x);
    const int64_t channels = x.dim(-1), rows = x.rows();
    check_tensor("rms_norm", "w", w, Dtype::f32, {channels});
    if (ctx.on_cuda()) return cuda_ops().rms_norm(ctx, y, x, w, eps);
    if (x.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, "rms_norm");
        rms_norm(ctx, wide.out(y), wide.in(x), w, eps);
        return wide.round();
    }
    const CpuKernels& cpu = cpu_kernels();
    float* to = y.as<float>();
    const float *from = x.as<float>(), *scale = w.as<float>();
    // For a few rows waking threads takes longer than the work.
    const int threads = rows * channels < 16384 ? 1 : ctx.threads;
    parallel_for(threads, rows, [&](int64_t t) {
        cpu.rms_norm(to + t * channels, from + t * channels, scale, channels, eps);
    });
}

void rms_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, float eps,
                       Tensor sums) {
    constexpr const char* kOp = "rms_norm_backward";
    require(x.rank == 2 && x.dim(1) > 0, kOp, ": expected x (T, C), found ", x);
    const int64_t rows = x.dim(0), channels = x.dim(1);
    check_tensor(kOp, "x", x, x.dtype, {rows, channels});
    check_tensor(kOp, "dx", dx, x.dtype, {rows, channels});
    check_tensor(kOp, "dy", dy, x.dtype, {rows, channels});
    for (const Tensor& vector : {w, dw})
        check_tensor(kOp, "w and dw", vector, Dtype::f32, {channels});
    if (sums) check_tensor(kOp, "sums", sums, Dtype::f32, {channels});
    if (ctx.on_cuda()) return cuda_ops().rms_norm_backward(ctx, dx, dw, dy, x, w, eps, sums);
    if (x.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, kOp);
        rms_norm_backward(ctx, wide.inout(dx), dw, wide.in(dy), wide.in(x), w, eps);
        wide.round();
        // sums takes the new dx.
        if (sums) cpu_add_rows(ctx, sums.as<float>(), wide.in(dx).as<float>(), rows, channels);
        return;
    }
    const Arena::Scope scope(ctx.arena);
    const CpuKernels& cpu = cpu_kernels();
    float* factors = ctx.arena.tensor(Dtype::f32, {rows}).as<float>();
    float *to = dx.as<float>(), *weights = dw.as<float>();
    const float *gradient = dy.as<float>(), *input = x.as<float>(), *scale = w.as<float>();
    parallel_for(ctx.threads, rows, [&](int64_t t) {
        const int64_t at = t * channels;
        factors[t] =
            cpu.rms_norm_backward(to + at, gradient + at, input + at, scale, channels, eps);
    });
    parallel_for(ctx.threads, (channels + kColumnsAtOnce - 1) / kColumnsAtOnce, [&](int64_t i) {
        const int64_t first = i * kColumnsAtOnce;
        cpu.rms_norm_gradients(weights + first, gradient + first, input + first, factors, rows,
                               channels, std::min(kColumnsAtOnce, channels - first));
    });
    if (sums) cpu_add_rows(ctx, sums.as<float>(), to, rows, channels);
}

}  // namespace hark
