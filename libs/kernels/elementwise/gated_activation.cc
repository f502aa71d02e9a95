#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

void gated_activation(Context& ctx, Tensor y, const Columns& gate, const Columns& up,
                      Activation f) {
    constexpr const char* kOp = "gated_activation";
    require(y.rank == 2 && is_float(y.dtype) && f != Activation::none, kOp,
            ": expected y (T, N) in f32, f16 or bf16 and an activation, found ", y);
    const int64_t n = y.dim(1);
    check_columns(kOp, "gate", gate, y.dim(0), n, y.dtype);
    check_columns(kOp, "up", up, y.dim(0), n, y.dtype);
    if (ctx.on_cuda()) return cuda_ops().gated_activation(ctx, y, gate, up, f);
    if (y.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, kOp);
        gated_activation(ctx, wide.out(y), {wide.in(gate.rows), gate.first},
                         {wide.in(up.rows), up.first}, f);
        return wide.round();
    }
    const CpuKernels& cpu = cpu_kernels();
    const int64_t gate_width = gate.rows.dim(1), up_width = up.rows.dim(1);
    float* to = y.as<float>();
    const float* gates = gate.rows.as<float>() + gate.first;
    const float* ups = up.rows.as<float>() + up.first;
    const int threads = y.size() < 16384 ? 1 : ctx.threads;
    parallel_for(threads, y.dim(0), [&](int64_t t) {
        cpu.gated(to + t * n, gates + t * gate_width, ups + t * up_width, n, f);
    });
}

}  // namespace hark
