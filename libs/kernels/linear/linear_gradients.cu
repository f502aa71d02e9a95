// The products of a training step, by cuBLASLt; the algorithm is chosen for the exact shape.
#include "kernels/cuda/cuda_common.cuh"
#include "kernels/linear/column_sums.cuh"
#include "kernels/linear/gemm.cuh"
#include "kernels/linear/matrix_product.cuh"

namespace hark::cuda {
namespace {

// cuBLASLt's GELU needs whole vectors.
bool fuses(const Tensor& y, Activation f) {
    return f == Activation::gelu_tanh && y.dtype == Dtype::bf16 && y.dim(1) % 8 == 0;
}

void forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Finish finish) {
    enter(ctx, {&y, &x, &w, &b, &finish.added, &finish.gelu_input});
    if (x.rows() == 0) return;
    const Arena::Scope scope(ctx.arena);
    finish.bias = b;
    if (b && x.dtype != Dtype::f32) {  // cuBLASLt needs a bias of y's type
        finish.bias = ctx.arena.tensor(x.dtype, {1, b.dim(0)});
        convert(ctx, finish.bias, b.reshaped({1, b.dim(0)}), nullptr);
    }
    multiply_matrices(ctx, y, {x}, {w, true}, finish);
}

}  // namespace

void linear_forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Tensor residual) {
    forward(ctx, y, x, w, b, {.added = residual});
}

void linear_activation(Context& ctx, Tensor y, Tensor h, Tensor x, Tensor w, Tensor b,
                       Activation f) {
    if (fuses(y, f))
        return forward(ctx, y, x, w, b, {.gelu = Finish::Gelu::value, .gelu_input = h});
    forward(ctx, h, x, w, b, {});
    cuda::activate(ctx, y, h, f);
}

void linear_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                     const Activated& from) {
    enter(ctx, {&dx, &dw, &db, &dy, &x, &w, &from.h});
    if (x.rows() == 0) return;
    if (dx && from.h && fuses(dx, from.f)) {
        multiply_matrices(ctx, dx, {dy}, {w}, {.gelu = Finish::Gelu::slope, .gelu_input = from.h});
    } else if (dx) {
        multiply_matrices(ctx, dx, {dy}, {w}, {});
        if (from.h) cuda::activate_backward(ctx, dx, dx, from.h, from.f);
    }
    multiply_matrices(ctx, dw, {dy, true}, {x}, {.added = dw});
    if (db) add_rows(ctx, db, dy);
}

}  // namespace hark::cuda
