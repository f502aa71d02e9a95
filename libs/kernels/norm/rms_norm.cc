#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void rms_norm(Context& ctx, Tensor y, Tensor x, Tensor w, float eps) {
    require(x.rank >= 1 && is_float(x.dtype) && x.dim(-1) > 0,
            "rms_norm: expected x (T, C) in f32, f16 or bf16, found ", x);
    const int64_t channels = x.dim(-1), rows = x.rows();
    const bool narrows = x.dtype == Dtype::f32 && ctx.on_cuda() && is_float(y.dtype);
    require(
        y.rank >= 1 && y.dim(-1) == channels && y.rows() == rows && (y.dtype == x.dtype || narrows),
        "rms_norm: expected y like x ", x, ", or of 16 bits where x is f32, found ", y);
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

}  // namespace hark
