// The products of a training step, all by cuBLASLt, whose algorithm is chosen for the very shape.
#include "kernels/gradients.cuh"
#include "kernels/linear_product.cuh"
#include "kernels/matrix_product.cuh"

namespace hark::cuda {
namespace {

// The types of a product's factors; gradients of weights are f32.
void check_types(const char* op, const Tensor& x, const Tensor& w) {
    require((x.dtype == Dtype::f32 || x.dtype == Dtype::bf16) && w.dtype == x.dtype, op,
            ": expected f32 or bf16 x and w of one type, found ", x, " and ", w);
}

// cuBLASLt's GELU wants whole vectors.
bool fuses(const Tensor& y, Activation f) {
    return f == Activation::gelu_tanh && y.dtype == Dtype::bf16 && y.dim(1) % 8 == 0;
}

// Checks the operands of a product and multiplies.
void forward(const char* op, Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Finish finish) {
    check_types(op, x, w);
    check_tensor(op, "w", w, x.dtype, {-1, -1});
    const int64_t n = w.dim(0), rows = x.rows();
    check_tensor(op, "x", x, x.dtype, {rows, w.dim(1)});
    check_tensor(op, "y", y, x.dtype, {rows, n});
    if (b) check_tensor(op, "b", b, Dtype::f32, {n});
    enter(ctx, {&y, &x, &w, &b, &finish.added, &finish.gelu_input});
    if (rows == 0) return;
    const Arena::Scope scope(ctx.arena);
    finish.bias = b;
    if (b && x.dtype != Dtype::f32) {  // cuBLASLt takes a bias of y's type
        finish.bias = ctx.arena.tensor(x.dtype, {1, n});
        convert(ctx, finish.bias, b.reshaped({1, n}), nullptr);
    }
    multiply_matrices(ctx, y, {x}, {w, true}, finish);
}

}  // namespace

void linear_forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Tensor residual) {
    const char* op = "linear_forward";
    if (residual) check_tensor(op, "residual", residual, y.dtype, {y.rows(), y.dim(-1)});
    forward(op, ctx, y, x, w, b, {.added = residual});
}

void linear_activated(Context& ctx, Tensor y, Tensor h, Tensor x, Tensor w, Tensor b,
                      Activation f) {
    const char* op = "linear_activated";
    check_tensor(op, "h", h, y.dtype, {y.rows(), y.dim(-1)});
    if (fuses(y, f))
        return forward(op, ctx, y, x, w, b, {.gelu = Finish::Gelu::value, .gelu_input = h});
    forward(op, ctx, h, x, w, b, {});
    cuda::activate(ctx, y, h, f);
}

void linear_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                     const Activated& from) {
    const char* op = "linear_backward";
    check_types(op, x, w);
    check_tensor(op, "w", w, x.dtype, {-1, -1});
    const int64_t n = w.dim(0), k = w.dim(1), rows = x.rows();
    check_tensor(op, "x", x, x.dtype, {rows, k});
    check_tensor(op, "dy", dy, x.dtype, {rows, n});
    check_tensor(op, "dw", dw, Dtype::f32, {n, k});
    if (dx) check_tensor(op, "dx", dx, x.dtype, {rows, k});
    if (db) check_tensor(op, "db", db, Dtype::f32, {n});
    if (from.h) check_tensor(op, "h", from.h, x.dtype, {rows, k});
    enter(ctx, {&dx, &dw, &db, &dy, &x, &w, &from.h});
    if (rows == 0) return;
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
