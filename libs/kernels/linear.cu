// linear on the GPU: the checks, and the choice between the plain units (linear_plain.cuh), the
// matrix units (linear_rows.cuh) and cuBLASLt (linear_product.cuh).
#include "kernels/linear_plain.cuh"
#include "kernels/linear_product.cuh"
#include "kernels/quantized.cuh"
#include "kernels/rows.cuh"

namespace hark::cuda {
namespace {

template <class X, class W>
void launch_numbers(Context& ctx, const RowsProduct& args, const X* x, const W* w) {
    // 16 bytes of weights a lane, where the matrix units have not taken such products.
    constexpr bool kTaken = sizeof(X) == 2 && (std::is_same_v<X, W> || sizeof(W) == 1);
    constexpr int kVector = kTaken ? 1 : 16 / sizeof(W);
    const bool aligned =
        reinterpret_cast<uintptr_t>(x) % 16 == 0 && reinterpret_cast<uintptr_t>(w) % 16 == 0;
    if (aligned && args.k % kVector == 0 && args.k * sizeof(X) % 16 == 0) {
        launch_plain<PlainRows<W, kVector>>(ctx, args, x, w, args.k);
    } else {
        launch_plain<PlainRows<W, 1>>(ctx, args, x, w, args.k);
    }
}

void plain_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then) {
    const RowsProduct args(y, x, w, then);
    with_float_type(x.dtype, [&](auto x_type) {
        const auto* xs = static_cast<const decltype(x_type)*>(x.data);
        if (w.values.dtype == Dtype::i8) {
            return launch_numbers(ctx, args, xs, w.values.as<int8_t>());
        }
        with_float_type(w.values.dtype, [&](auto w_type) {
            launch_numbers(ctx, args, xs, static_cast<const decltype(w_type)*>(w.values.data));
        });
    });
}

void check(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then) {
    require(w.values.rank == 2 && w.values.dim(1) > 0 && x.rank >= 1 && y.rank >= 1,
            "linear: expected weights (N, K), "
            "found ",
            w.values);
    const int64_t n = w.values.dim(0), k = w.values.dim(1);
    require(x.dim(-1) == k && y.dim(-1) == n && x.rows() == y.rows(), "linear: expected x (T, ", k,
            ") and y (T, ", n, "), found ", x, " and ", y);
    require(is_float(x.dtype) && is_float(y.dtype),
            "linear: expected x and y in f32, f16 or bf16, "
            "found ",
            x, " and ", y);
    const bool scaled = w.values.dtype == Dtype::i8;
    require(scaled || is_float(w.values.dtype) || is_quantized(w.values.dtype),
            "linear: expected weights in f32, f16, bf16, i8 or quantised blocks, "
            "found ",
            w.values);
    require(scaled == bool(w.scales) &&
                (!scaled || (w.scales.dtype == Dtype::f32 && w.scales.size() == n)),
            "linear: expected f32 scales (", n, ") with i8 weights and with no others, found ",
            w.scales);
    require(!then.bias || (then.bias.dtype == Dtype::f32 && then.bias.size() == n),
            "linear: expected a bias f32 (", n, "), found ", then.bias);
    require(!then.residual || (then.residual.dtype == y.dtype && then.residual.size() == y.size()),
            "linear: expected a residual like y, ", y, ", found ", then.residual);
}

void check_norm(const Tensor& y, const Tensor& x, const Norm& norm) {
    require(y.data != x.data, "linear: expected a y that is not x beside a norm");
    check_tensor("linear", "the norm's weight", norm.weight, Dtype::f32, {x.dim(-1)});
    check_tensor("linear", "the norm's bias", norm.bias, Dtype::f32, {x.dim(-1)});
}

}  // namespace

void linear(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
            const Company& with) {
    const auto& [norm, append] = with;
    check(y, x, w, then);
    enter(ctx, {&y, &x, &w.values, &w.scales, &then.bias, &then.residual});
    if (norm.weight) check_norm(y, x, norm);
    if (append)
        check_append("linear", append->keys, append->values, y, append->first, append->rows);
    const int64_t rows = x.rows();
    if (rows == 0 || w.values.dim(0) == 0) return;
    if (norm.weight && !norms_row(x, w, norm)) {
        const Arena::Scope scope(ctx.arena);
        Tensor normed = ctx.arena.tensor(x.dtype, {rows, x.dim(-1)});
        cuda::layer_norm(ctx, normed, x, norm.weight, norm.bias, norm.eps);
        return cuda::linear(ctx, y, normed, w, then, {.append = append});
    }
    if (append && !appends_rows(x, w, *append)) {
        cuda::linear(ctx, y, x, w, then, {.norm = norm});
        return cuda::append_cache(ctx, append->keys, append->values, y, append->first,
                                  append->rows);
    }
    enter(ctx, {&norm.weight, &norm.bias});
    if (append)
        enter(ctx, {&append->keys, &append->values, &append->rows.slot, &append->rows.length});
    if (rows >= kManyRowsOnGpu) return many_rows(ctx, y, x, w, then);
    if (is_quantized(w.values.dtype)) return quantized_rows(ctx, y, x, w, then);
    if (has_rows_product(x, w)) return rows_product(ctx, y, x, w, then, with);
    plain_product(ctx, y, x, w, then);
}

}  // namespace hark::cuda
