// linear on the GPU: the checks, the kernel on the plain units, and the choice between it, the
// matrix units (linear_rows.cuh) and cuBLASLt (linear_product.cuh).
#include "kernels/linear_product.cuh"
#include "kernels/linear_rows.cuh"

namespace hark::cuda {
namespace {

constexpr int kWarps = 4;  // of a block
constexpr int kMostRows = 8;

// y (T, N) for R rows of x and O outputs a warp, for types and sizes that the matrix units do not
// take. Every lane sums the products of its own columns in their order, then the lanes' sums are
// added in a tree: for a row of x the same bits whatever R and O are, and so whatever the number
// of rows.
template <class X, class W, int V, int R, int O>
__global__ void __launch_bounds__(32 * kWarps)
    plain_kernel(RowsProduct args, const X* x, const W* __restrict__ w) {
    let_next_start();
    wait_for_previous();
    const int lane = threadIdx.x % 32;
    const int64_t n = (int64_t{blockIdx.x} * kWarps + threadIdx.x / 32) * O;
    const int64_t t = int64_t{blockIdx.y} * R;
    if (n >= args.n) return;
    const X* xs[R];  // past the end the last row and output are computed again and not written
    const W* ws[O];
    for (int r = 0; r < R; ++r) xs[r] = x + min(t + r, args.rows - 1) * args.k;
    for (int o = 0; o < O; ++o) ws[o] = w + min(n + o, args.n - 1) * args.k;
    float sums[R][O] = {};
#pragma unroll 4
    for (int64_t k = int64_t{lane} * V; k < args.k; k += 32 * V) {
        Pack<W, V> weights[O];
        for (int o = 0; o < O; ++o) weights[o] = load_pack<V>(ws[o] + k);
        for (int r = 0; r < R; ++r) {
            const Pack<X, V> inputs = load_pack<V>(xs[r] + k);
            for (int o = 0; o < O; ++o)
                for (int v = 0; v < V; ++v)
                    sums[r][o] =
                        fmaf(to_f32(inputs.values[v]), to_f32(weights[o].values[v]), sums[r][o]);
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int o = 0; o < O; ++o) {
            const float sum = warp_sum(sums[r][o]);
            // One lane an output, so that the stores are spread over the warp.
            if (lane != r * O + o || t + r >= args.rows || n + o >= args.n) continue;
            const int64_t at = (t + r) * args.n + n + o;
            store_any(args.y, args.y_type, at,
                      finished(args, column_of(args, n + o), sum, residual_at(args, at)));
        }
    }
}

template <int V, class X, class W>
void launch_plain(Context& ctx, const RowsProduct& args, const X* x, const W* w) {
    const auto launch = [&](auto kernel, int rows, int outputs) {
        const dim3 grid(static_cast<unsigned>(ceil_div(args.n, kWarps * outputs)),
                        static_cast<unsigned>(ceil_div(args.rows, rows)));
        launch_early(ctx, kernel, grid, 32 * kWarps, 0, args, x, w);
    };
    if (args.rows == 1) return launch(plain_kernel<X, W, V, 1, 1>, 1, 1);
    if (args.rows <= 4) return launch(plain_kernel<X, W, V, 4, 2>, 4, 2);
    launch(plain_kernel<X, W, V, kMostRows, 2>, kMostRows, 2);
}

template <class X, class W>
void launch_plain(Context& ctx, const RowsProduct& args, const X* x, const W* w) {
    // 16 bytes of weights a lane, where the matrix units have not taken such products.
    constexpr bool kTaken = sizeof(X) == 2 && (std::is_same_v<X, W> || sizeof(W) == 1);
    constexpr int kVector = kTaken ? 1 : 16 / sizeof(W);
    const bool aligned =
        reinterpret_cast<uintptr_t>(x) % 16 == 0 && reinterpret_cast<uintptr_t>(w) % 16 == 0;
    if (aligned && args.k % kVector == 0 && args.k * sizeof(X) % 16 == 0) {
        launch_plain<kVector>(ctx, args, x, w);
    } else {
        launch_plain<1>(ctx, args, x, w);
    }
}

void plain_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then) {
    const RowsProduct args(y, x, w, then);
    with_float_type(x.dtype, [&](auto x_type) {
        const auto* xs = static_cast<const decltype(x_type)*>(x.data);
        if (w.values.dtype == Dtype::i8) {
            return launch_plain(ctx, args, xs, w.values.as<int8_t>());
        }
        with_float_type(w.values.dtype, [&](auto w_type) {
            launch_plain(ctx, args, xs, static_cast<const decltype(w_type)*>(w.values.data));
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
    require(scaled || is_float(w.values.dtype),
            "linear: expected weights in f32, f16, bf16 or i8, "
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

}  // namespace

void linear(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then) {
    check(y, x, w, then);
    enter(ctx, {&y, &x, &w.values, &w.scales, &then.bias, &then.residual});
    const int64_t rows = x.rows();
    if (rows == 0 || w.values.dim(0) == 0) return;
    if (rows >= kManyRowsOnGpu) return many_rows(ctx, y, x, w, then);
    if (has_rows_product(x, w)) return rows_product(ctx, y, x, w, then);
    plain_product(ctx, y, x, w, then);
}

}  // namespace hark::cuda
