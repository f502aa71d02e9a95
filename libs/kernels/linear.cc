#include "kernels/checks.h"
#include "kernels/cuda_library.h"
#include "kernels/ops.h"
#include "kernels/product.h"

namespace hark {

void linear(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then) {
    if (ctx.on_cuda()) return cuda_ops().linear(ctx, y, x, w, then);
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
}

}  // namespace hark
