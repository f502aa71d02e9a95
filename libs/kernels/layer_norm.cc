#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cuda_library.h"
#include "kernels/ops.h"
#include "kernels/parallel.h"

namespace hark {

void layer_norm(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, float eps) {
    if (ctx.on_cuda()) return cuda_ops().layer_norm(ctx, y, x, w, b, eps);
    require(x.rank >= 1 && x.dtype == Dtype::f32 && x.dim(-1) > 0,
            "layer_norm: expected x f32 (T, C), found ", x);
    const int64_t channels = x.dim(-1), rows = x.rows();
    require(y.rank >= 1 && y.dtype == Dtype::f32 && y.dim(-1) == channels && y.rows() == rows,
            "layer_norm: expected y like x ", x, ", found ", y);
    check_tensor("layer_norm", "w", w, Dtype::f32, {channels});
    check_tensor("layer_norm", "b", b, Dtype::f32, {channels});
    const CpuKernels& cpu = cpu_kernels();
    float* to = y.as<float>();
    const float *from = x.as<float>(), *scale = w.as<float>(), *shift = b.as<float>();
    // A few rows take less time than waking threads for them.
    const int threads = rows * channels < 16384 ? 1 : ctx.threads;
    parallel_for(threads, rows, [&](int64_t t) {
        cpu.layer_norm(to + t * channels, from + t * channels, scale, shift, channels, eps);
    });
}

}  // namespace hark
