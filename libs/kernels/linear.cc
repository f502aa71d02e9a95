#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cuda_gradients.h"
#include "kernels/cuda_library.h"
#include "kernels/gradients.h"
#include "kernels/onednn.h"
#include "kernels/parallel.h"
#include "kernels/product.h"
#include "kernels/widened.h"

namespace hark {

void linear(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
            const Company& with) {
    if (ctx.on_cuda()) return cuda_ops().linear(ctx, y, x, w, then, with);
    const Arena::Scope scope(ctx.arena);
    if (with.norm.weight) {
        Tensor normed = ctx.arena.tensor(x.dtype, {x.rows(), x.dim(-1)});
        layer_norm(ctx, normed, x, with.norm.weight, with.norm.bias, with.norm.eps);
        x = normed;
    }
    check_matrix("linear", w);
    const int64_t rows = x.rows(), n_size = w.values.dim(0), k_size = w.values.dim(1);
    require(x.rank >= 1 && x.dtype == Dtype::f32 && x.dim(-1) == k_size,
            "linear: expected x f32 (T, ", k_size, "), found ", x);
    require(y.rank >= 1 && y.dtype == Dtype::f32 && y.dim(-1) == n_size && y.rows() == rows,
            "linear: expected y f32 (", rows, ", ", n_size, "), found ", y);
    if (then.bias) check_tensor("linear", "bias", then.bias, Dtype::f32, {n_size});
    require(
        !then.residual || (then.residual.dtype == Dtype::f32 && then.residual.size() == y.size()),
        "linear: expected a residual like y ", y, ", found ", then.residual);
    cpu_product(ctx, y.as<float>(), x.as<float>(), rows, w, then);
    if (const Append* append = with.append)
        append_cache(ctx, append->keys, append->values, y, append->first, append->rows);
}

void linear_forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Tensor residual) {
    if (ctx.on_cuda()) return cuda_gradients().linear_forward(ctx, y, x, w, b, residual);
    if (x.dtype == Dtype::bf16) {
        Widened wide(ctx, "linear_forward");
        linear(ctx, wide.out(y), wide.in(x), {w}, {.bias = b, .residual = wide.in(residual)});
        return wide.round();
    }
    linear(ctx, y, x, {w}, {.bias = b, .residual = residual});
}

void linear_activated(Context& ctx, Tensor y, Tensor h, Tensor x, Tensor w, Tensor b,
                      Activation f) {
    if (ctx.on_cuda()) return cuda_gradients().linear_activated(ctx, y, h, x, w, b, f);
    linear_forward(ctx, h, x, w, b, {});
    activate(ctx, y, h, f);
}

void linear_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                     const Activated& from) {
    if (ctx.on_cuda()) return cuda_gradients().linear_backward(ctx, dx, dw, db, dy, x, w, from);
    if (x.dtype == Dtype::bf16) {
        Widened wide(ctx, "linear_backward");
        linear_backward(ctx, wide.out(dx), dw, db, wide.in(dy), wide.in(x), w,
                        {wide.in(from.h), from.f});
        return wide.round();
    }
    check_matrix("linear_backward", {w});
    const int64_t n = w.dim(0), k = w.dim(1), rows = x.rows();
    check_tensor("linear_backward", "x", x, Dtype::f32, {rows, k});
    check_tensor("linear_backward", "dy", dy, Dtype::f32, {rows, n});
    check_tensor("linear_backward", "dw", dw, Dtype::f32, {n, k});
    if (dx) check_tensor("linear_backward", "dx", dx, Dtype::f32, {rows, k});
    if (db) check_tensor("linear_backward", "db", db, Dtype::f32, {n});
    const float *gradient = dy.as<float>(), *input = x.as<float>();
    if (dx) cpu_product_backward(ctx, dx.as<float>(), gradient, rows, {w});
    if (dx && from.h) activate_backward(ctx, dx, dx, from.h, from.f);
    onednn::multiply(ctx.threads, dw.as<float>(), k, {gradient, n, true}, {input, k}, n, k, rows,
                     true);
    if (db) cpu_add_rows(ctx, db.as<float>(), gradient, rows, n);
}

}  // namespace hark
