#include <algorithm>

#include "kernels/checks.h"
#include "kernels/linear/product.h"
#include "kernels/ops.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {

namespace {

// windows = the three rows around each output, zeros past either end, as rows of 3 * C. With
// channels last and taps outermost each is one piece of x: a copy. oneDNN refuses rows that
// overlap.
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

int64_t outputs_of(int64_t t_in, int stride) { return t_in == 0 ? 0 : (t_in - 1) / stride + 1; }

void check_conv1d(const Tensor& y, const Tensor& x, const Matrix& w, int stride,
                  const Epilogue& then) {
    constexpr const char* kOp = "conv1d";
    check_matrix(kOp, w);
    require((x.rank == 2 || x.rank == 3) && is_float(x.dtype) && is_float(y.dtype), kOp,
            ": expected x (B, T, C) and y in f32, f16 or bf16, found ", x, " and ", y);
    require(stride >= 1, kOp, ": expected a stride of 1 or more, found ", stride);
    const int64_t channels = x.dim(-1), n = w.values.dim(0);
    require(channels > 0 && w.values.dim(1) == 3 * channels, kOp, ": expected weights (N, ",
            3 * channels, ") for x ", x, ", found ", w.values);
    const int64_t sequences = x.rank == 3 ? x.dim(0) : 1, t_out = outputs_of(x.dim(-2), stride);
    require(y.rank >= 2 && y.dim(-1) == n && y.rows() == sequences * t_out, kOp, ": expected y (",
            sequences, ", ", t_out, ", ", n, "), found ", y);
    check_epilogue(kOp, y, n, then);
}

}  // namespace

void conv1d(Context& ctx, Tensor y, Tensor x, const Matrix& w, int stride, const Epilogue& then) {
    check_conv1d(y, x, w, stride, then);
    if (ctx.on_cuda()) return cuda_ops().conv1d(ctx, y, x, w, stride, then);
    const int64_t channels = x.dim(-1), t_in = x.dim(-2), n_size = w.values.dim(0);
    const int64_t sequences = x.rank == 3 ? x.dim(0) : 1, t_out = outputs_of(t_in, stride);
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
