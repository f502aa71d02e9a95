#include <algorithm>

#include "kernels/checks.h"
#include "kernels/cuda_library.h"
#include "kernels/ops.h"
#include "kernels/parallel.h"
#include "kernels/product.h"

namespace hark {

namespace {

// The windows of three rows, zeros beyond either end, as rows of 3 * C. With channels last and taps
// outermost each is one piece of x, so that this is a copy; oneDNN refuses rows that overlap.
void gather_windows(Context& ctx, float* windows, const float* x, int64_t t_in, int64_t t_out,
                    int64_t channels, int stride) {
    parallel_for(ctx.threads, t_out, [&](int64_t t) {
        float* to = windows + t * 3 * channels;
        for (int64_t tap = 0; tap < 3; ++tap, to += channels) {
            const int64_t row = t * stride + tap - 1;
            if (row < 0 || row >= t_in)
                std::fill_n(to, channels, 0.0f);
            else
                std::copy_n(x + row * channels, channels, to);
        }
    });
}

}  // namespace

void conv1d(Context& ctx, Tensor y, Tensor x, const Matrix& w, int stride, const Epilogue& then) {
    if (ctx.on_cuda()) return cuda_ops().conv1d(ctx, y, x, w, stride, then);
    check_matrix("conv1d", w);
    require(x.rank == 2 || x.rank == 3, "conv1d: expected x f32 (B, T, C), found ", x);
    require(stride >= 1, "conv1d: expected a stride of 1 or more, found ", stride);
    const int64_t channels = x.dim(-1), t_in = x.dim(-2), n_size = w.values.dim(0);
    const int64_t sequences = x.rank == 3 ? x.dim(0) : 1;
    const int64_t t_out = t_in == 0 ? 0 : (t_in - 1) / stride + 1;
    require(x.dtype == Dtype::f32 && w.values.dim(1) == 3 * channels,
            "conv1d: expected weights (N, ", 3 * channels, ") for x f32 ", x, ", found ", w.values);
    require(y.rank >= 2 && y.dtype == Dtype::f32 && y.dim(-1) == n_size &&
                y.rows() == sequences * t_out,
            "conv1d: expected y f32 (", sequences, ", ", t_out, ", ", n_size, "), found ", y);
    if (then.bias) check_tensor("conv1d", "bias", then.bias, Dtype::f32, {n_size});
    require(
        !then.residual || (then.residual.dtype == Dtype::f32 && then.residual.size() == y.size()),
        "conv1d: expected a residual like y ", y, ", found ", then.residual);
    for (int64_t b = 0; b < sequences; ++b) {
        const Arena::Scope scope(ctx.arena);
        float* windows = ctx.arena.tensor(Dtype::f32, {t_out, 3 * channels}).as<float>();
        gather_windows(ctx, windows, x.as<float>() + b * t_in * channels, t_in, t_out, channels,
                       stride);
        Epilogue own = then;
        if (then.residual)
            own.residual.data = static_cast<float*>(then.residual.data) + b * t_out * n_size;
        cpu_product(ctx, y.as<float>() + b * t_out * n_size, windows, t_out, w, own);
    }
}

}  // namespace hark
