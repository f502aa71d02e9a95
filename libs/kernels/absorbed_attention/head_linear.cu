// head_linear on the GPU: a warp computes a few outputs of a few rows of one head.
#include "kernels/linear/simt.cuh"

namespace hark::cuda {
namespace {

constexpr const char* kOp = "head_linear";
constexpr int kOutputs = 2;  // per warp

// Elements from one head of a row to the next, and the heads of a row.
struct HeadArgs {
    int64_t rows, n, k, stride, x_head, y_head, heads;
    const float* scales;  // of all heads, or null
};

// R rows per warp; past the end the last one is computed again and not written.
template <class X, class Rows, int R>
__global__ void __launch_bounds__(32 * kSimtWarps)
    head_kernel(HeadArgs args, X* y, const X* x, const typename Rows::Stored* __restrict__ w) {
    constexpr int V = Rows::kVector;
    pdl_trigger();
    pdl_wait();
    const int lane = threadIdx.x % 32;
    const int64_t h = blockIdx.z, t = int64_t{blockIdx.y} * R;
    const int64_t n = (int64_t{blockIdx.x} * kSimtWarps + threadIdx.x / 32) * kOutputs;
    if (n >= args.n) return;
    const X* xs[R];
    const typename Rows::Stored* ws[kOutputs];
    for (int r = 0; r < R; ++r)
        xs[r] = x + (min(t + r, args.rows - 1) * args.heads + h) * args.x_head;
    for (int o = 0; o < kOutputs; ++o)
        ws[o] = w + (h * args.n + min(n + o, args.n - 1)) * args.stride;
    float sums[R][kOutputs] = {};
#pragma unroll Rows::kUnroll
    for (int64_t k = int64_t{lane} * V; k < args.k; k += 32 * V) {
        decltype(Rows::load(ws[0], k)) weights[kOutputs];
        for (int o = 0; o < kOutputs; ++o) weights[o] = Rows::load(ws[o], k);
        for (int r = 0; r < R; ++r) {
            const Pack<X, V> inputs = load_pack<V>(xs[r] + k);
            for (int o = 0; o < kOutputs; ++o)
                for (int v = 0; v < V; ++v)
                    sums[r][o] =
                        fmaf(to_f32(inputs.values[v]), to_f32(weights[o].values[v]), sums[r][o]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int o = 0; o < kOutputs; ++o) {
            const float sum = warp_sum(sums[r][o]);
            if (lane != r * kOutputs + o || t + r >= args.rows || n + o >= args.n) continue;
            const float scale = args.scales ? args.scales[h * args.n + n + o] : 1.0f;
            y[((t + r) * args.heads + h) * args.y_head + n + o] = from_f32<X>(sum * scale);
        }
}

}  // namespace

void head_linear(Context& ctx, const Columns& y, const Columns& x, const std::vector<Matrix>& w) {
    const Matrix& first = w.front();
    enter(ctx, {&y.rows, &x.rows, &first.values, &first.scales});
    check_stacked(kOp, w);
    const auto heads = std::ssize(w);
    const int64_t rows = x.rows.dim(0), n = first.values.dim(0);
    if (rows == 0) return;
    HeadArgs args{rows,
                  n,
                  first.values.dim(1),
                  0,
                  x.rows.dim(1) / heads,
                  y.rows.dim(1) / heads,
                  heads,
                  first.scales ? first.scales.as<float>() : nullptr};
    constexpr int kMany = 8;  // rows per warp, of many
    const int per_warp = rows == 1 ? 1 : kMany;
    const dim3 grid(static_cast<unsigned>(ceil_div(n, kSimtWarps * kOutputs)),
                    static_cast<unsigned>(ceil_div(rows, per_warp)), static_cast<unsigned>(heads));
    with_float_type(x.rows.dtype, [&](auto x_type) {
        using X = decltype(x_type);
        const auto* from = static_cast<const X*>(x.rows.data) + x.first;
        auto* to = static_cast<X*>(y.rows.data) + y.first;
        const bool packs =
            reinterpret_cast<uintptr_t>(from) % 16 == 0 && args.x_head * sizeof(X) % 16 == 0;
        with_rows(kOp, first, packs, [&](auto reader, const auto* ws, int64_t stride) {
            using Rows = decltype(reader);
            args.stride = stride;
            const auto kernel = rows == 1 ? head_kernel<X, Rows, 1> : head_kernel<X, Rows, kMany>;
            pdl_launch(ctx, kernel, grid, 32 * kSimtWarps, 0, args, to, from, ws);
        });
    });
}

}  // namespace hark::cuda
