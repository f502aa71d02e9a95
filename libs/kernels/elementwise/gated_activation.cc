#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/gradients.h"
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

namespace {

// The columns of a copy in f32; those of the same tensor as `other` are in its copy.
template <class Cast>
Columns widened(const Columns& of, const Columns& other, const Columns& copy_of_other,
                const Cast& cast) {
    if (of.rows.data == other.rows.data) return {copy_of_other.rows, of.first};
    return {cast(of.rows), of.first};
}

}  // namespace

void gated_activation_backward(Context& ctx, const Columns& d_gate, const Columns& d_up, Tensor dy,
                               const Columns& gate, const Columns& up, Activation f) {
    constexpr const char* kOp = "gated_activation_backward";
    require(dy.rank == 2 && (dy.dtype == Dtype::f32 || dy.dtype == Dtype::bf16) &&
                f != Activation::none,
            kOp, ": expected dy (T, N) in f32 or bf16 and an activation, found ", dy);
    const int64_t rows = dy.dim(0), n = dy.dim(1);
    check_columns(kOp, "d_gate", d_gate, rows, n, dy.dtype);
    check_columns(kOp, "d_up", d_up, rows, n, dy.dtype);
    check_columns(kOp, "gate", gate, rows, n, dy.dtype);
    check_columns(kOp, "up", up, rows, n, dy.dtype);
    if (ctx.on_cuda())
        return cuda_ops().gated_activation_backward(ctx, d_gate, d_up, dy, gate, up, f);
    if (dy.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, kOp);
        const auto in = [&](const Tensor& t) { return wide.in(t); };
        const auto inout = [&](const Tensor& t) { return wide.inout(t); };
        const Columns wide_gate{in(gate.rows), gate.first};
        const Columns wide_d_gate{inout(d_gate.rows), d_gate.first};
        gated_activation_backward(ctx, wide_d_gate, widened(d_up, d_gate, wide_d_gate, inout),
                                  in(dy), wide_gate, widened(up, gate, wide_gate, in), f);
        return wide.round();
    }
    const CpuKernels& cpu = cpu_kernels();
    const auto at = [](const Columns& columns, int64_t t) {
        return columns.rows.as<float>() + t * columns.rows.dim(1) + columns.first;
    };
    const float* gradient = dy.as<float>();
    parallel_for(ctx.threads, rows, [&](int64_t t) {
        const float *from = gradient + t * n, *gates = at(gate, t), *ups = at(up, t);
        float *to_gate = at(d_gate, t), *to_up = at(d_up, t);
        cpu.activate_backward(to_gate, from, gates, n, f);
        cpu.epilogue(to_up, gates, nullptr, nullptr, n, f);
        for (int64_t i = 0; i < n; ++i) to_gate[i] *= ups[i], to_up[i] *= from[i];
    });
}

}  // namespace hark
