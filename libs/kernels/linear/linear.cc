#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/elementwise/cast_to_f32.h"
#include "kernels/gradients.h"
#include "kernels/linear/onednn.h"
#include "kernels/linear/product.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/cuda_library.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

void check_linear(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then,
                  const LinearFusion& with) {
    constexpr const char* kOp = "linear";
    check_matrix(kOp, w);
    const int64_t k = w.values.dim(1), n = w.values.dim(0) / (with.gated ? 2 : 1);
    require(k > 0 && x.rank >= 1 && y.rank >= 1 && is_float(x.dtype) && is_float(y.dtype) &&
                x.dim(-1) == k && y.dim(-1) == n && x.rows() == y.rows(),
            kOp, ": expected x (T, ", k, ") and y (T, ", n, ") in f32, f16 or bf16, found ", x,
            " and ", y);
    require(!with.gated || (w.values.dim(0) % 2 == 0 && then.activation != Activation::none &&
                            !then.residual && !with.append),
            kOp,
            ": expected of a gated product an activation, two halves of one size, and neither "
            "a residual nor caches, found ",
            w.values);
    check_epilogue(kOp, y, w.values.dim(0), then);
    if (with.norm.weight) {
        require(y.data != x.data, kOp, ": expected a y that is not x with a norm");
        check_tensor(kOp, "the norm's weight", with.norm.weight, Dtype::f32, {k});
        if (with.norm.kind == NormKind::layer)
            check_tensor(kOp, "the norm's bias", with.norm.bias, Dtype::f32, {k});
    }
    if (const Append* append = with.append)
        check_append(kOp, append->keys, append->values, y, append->first, append->rows);
}

// Checks the types of a training product; gradients of weights are f32.
void check_factors(const char* op, const Tensor& x, const Tensor& w) {
    require(x.dtype == Dtype::f32 || x.dtype == Dtype::bf16, op,
            ": expected x and w of one type, f32 or bf16, found ", x, " and ", w);
    check_tensor(op, "w", w, x.dtype, {-1, -1});
}

// Checks the arguments of linear_forward and linear_activation.
void check_forward(const char* op, const Tensor& y, const Tensor& x, const Tensor& w,
                   const Tensor& b) {
    check_factors(op, x, w);
    check_tensor(op, "x", x, x.dtype, {x.rows(), w.dim(1)});
    check_tensor(op, "y", y, x.dtype, {x.rows(), w.dim(0)});
    if (b) check_tensor(op, "b", b, Dtype::f32, {w.dim(0)});
}

// linear_backward of checked f32 tensors; w of any type.
void backward_in_f32(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                     const Activated& from) {
    const int64_t n = w.dim(0), k = w.dim(1), rows = x.rows();
    const float *gradient = dy.as<float>(), *input = x.as<float>();
    if (dx) cpu_product_backward(ctx, dx.as<float>(), gradient, rows, {w});
    if (dx && from.h) activate_backward(ctx, dx, dx, from.h, from.f);
    onednn::multiply(ctx.threads, dw.as<float>(), k, {gradient, n, true}, {input, k}, n, k, rows,
                     true);
    if (db) cpu_add_rows(ctx, db.as<float>(), gradient, rows, n);
}

}  // namespace

void linear(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
            const LinearFusion& with) {
    check_linear(y, x, w, then, with);
    if (ctx.on_cuda()) return cuda_ops().linear(ctx, y, x, w, then, with);
    const Arena::Scope scope(ctx.arena);
    if (with.norm.weight) {
        Tensor normed = ctx.arena.tensor(x.dtype, {x.rows(), x.dim(-1)});
        normalize(ctx, normed, x, with.norm);
        x = normed;
    }
    if (with.gated) return cpu_gated_product(ctx, y.as<float>(), x.as<float>(), x.rows(), w, then);
    cpu_product(ctx, y.as<float>(), x.as<float>(), x.rows(), w, then);
    if (const Append* append = with.append)
        append_cache(ctx, append->keys, append->values, y, append->first, append->rows);
}

void linear_forward(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, Tensor residual) {
    check_forward("linear_forward", y, x, w, b);
    if (residual)
        check_tensor("linear_forward", "residual", residual, y.dtype, {y.dim(0), y.dim(1)});
    if (ctx.on_cuda()) return cuda_ops().linear_forward(ctx, y, x, w, b, residual);
    if (x.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, "linear_forward");
        linear(ctx, wide.out(y), wide.in(x), {w}, {.bias = b, .residual = wide.in(residual)});
        return wide.round();
    }
    linear(ctx, y, x, {w}, {.bias = b, .residual = residual});
}

void linear_activation(Context& ctx, Tensor y, Tensor h, Tensor x, Tensor w, Tensor b,
                       Activation f) {
    check_forward("linear_activation", y, x, w, b);
    check_tensor("linear_activation", "h", h, y.dtype, {y.dim(0), y.dim(1)});
    require(f != Activation::none, "linear_activation: expected an activation, found none");
    if (ctx.on_cuda()) return cuda_ops().linear_activation(ctx, y, h, x, w, b, f);
    linear_forward(ctx, h, x, w, b, {});
    activate(ctx, y, h, f);
}

void linear_backward(Context& ctx, Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w,
                     const Activated& from) {
    constexpr const char* kOp = "linear_backward";
    check_factors(kOp, x, w);
    const int64_t n = w.dim(0), k = w.dim(1), rows = x.rows();
    check_tensor(kOp, "x", x, x.dtype, {rows, k});
    check_tensor(kOp, "dy", dy, x.dtype, {rows, n});
    check_tensor(kOp, "dw", dw, Dtype::f32, {n, k});
    if (dx) check_tensor(kOp, "dx", dx, x.dtype, {rows, k});
    if (db) check_tensor(kOp, "db", db, Dtype::f32, {n});
    if (from.h) {
        check_tensor(kOp, "h", from.h, x.dtype, {rows, k});
        require(from.f != Activation::none, kOp, ": expected an activation of h, found none");
    }
    if (ctx.on_cuda()) return cuda_ops().linear_backward(ctx, dx, dw, db, dy, x, w, from);
    if (x.dtype == Dtype::bf16) {
        CastToF32 wide(ctx, kOp);
        backward_in_f32(ctx, wide.out(dx), dw, db, wide.in(dy), wide.in(x), w,
                        {wide.in(from.h), from.f});
        return wide.round();
    }
    backward_in_f32(ctx, dx, dw, db, dy, x, w, from);
}

}  // namespace hark
