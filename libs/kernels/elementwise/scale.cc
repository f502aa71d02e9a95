// add_scaled and scale_logits.
#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void add_scaled(Context& ctx, Tensor x, Tensor y, float scale) {
    require(
        x.rank == 2 && is_float(x.dtype) && y.dtype == x.dtype && y.rank == 2 && y.shape == x.shape,
        "add_scaled: expected x (T, C) in f32, f16 or bf16 and y like it, found ", x, " and ", y);
    if (ctx.on_cuda()) return cuda_ops().add_scaled(ctx, x, y, scale);
    const int64_t channels = x.dim(1);
    float* to = x.as<float>();
    const float* from = y.as<float>();
    const int threads = x.size() < 16384 ? 1 : ctx.threads;
    parallel_for(threads, x.dim(0), [&](int64_t t) {
        for (int64_t c = t * channels; c < (t + 1) * channels; ++c) to[c] += from[c] * scale;
    });
}

void scale_logits(Context& ctx, Tensor x, float scale, float cap) {
    require(x.rank == 2 && cap >= 0, "scale_logits: expected x (T, V) and a cap from 0, found ", x,
            " and ", cap);
    check_tensor("scale_logits", "x", x, Dtype::f32, {x.dim(0), x.dim(1)});
    if (ctx.on_cuda()) return cuda_ops().scale_logits(ctx, x, scale, cap);
    const int64_t n = x.dim(1);
    parallel_for(ctx.threads, x.dim(0), [&](int64_t t) {
        float* row = x.as<float>() + t * n;
        if (cap > 0)
            cpu_kernels().soft_cap(row, n, scale, cap);
        else
            cpu_kernels().multiply(row, row, scale, n);
    });
}

}  // namespace hark
