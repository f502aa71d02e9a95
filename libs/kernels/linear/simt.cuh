// linear of few rows on the plain units, for weights of any type.
#pragma once

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

constexpr int kSimtWarps = 4;  // per block
constexpr int kMostRows = 8;

// Reads rows of weights that are stored as single values, V at a time.
template <class W, int V>
struct SimtRows {
    using Stored = W;
    static constexpr int kVector = V, kUnroll = 4;
    static __device__ Pack<W, V> load(const W* row, int64_t k) { return load_pack<V>(row + k); }
};

// Checks that the matrices are stored one after another, as one (E * N, K) with scales (E * N).
inline void check_stacked(const char* op, const std::vector<Matrix>& each) {
    const Matrix& first = each.front();
    const auto at = [](const Tensor& tensor) { return static_cast<const std::byte*>(tensor.data); };
    for (size_t e = 0; e < each.size(); ++e) {
        const Matrix& one = each[e];
        require(
            one.values.dtype == first.values.dtype &&
                at(one.values) == at(first.values) + e * first.values.bytes() &&
                (!first.scales || at(one.scales) == at(first.scales) + e * first.scales.bytes()),
            op, ": expected matrices of one type, one after another, found ", one.values, " after ",
            first.values);
    }
}

// Calls use(rows, w, stride): the reader of w's rows, the first one and their distance. aligned_x:
// rows of x begin at multiples of 16 bytes.
template <class Use>
void with_rows(const char* op, const Matrix& w, bool aligned_x, const Use& use) {
    const Dtype stored = w.values.dtype;
    const int64_t k = w.values.dim(1);
    if (is_quantized(stored)) {
        require(aligned_x, op, ": expected rows of x aligned to 16 bytes");
        return with_block_type(stored, [&](auto block) {
            use(BlockRows<decltype(block)>(), static_cast<const uint8_t*>(w.values.data),
                static_cast<int64_t>(row_bytes(stored, k)));
        });
    }
    const auto of_values = [&](auto value) {
        using W = decltype(value);
        constexpr int kVector = 16 / sizeof(W);
        const auto* ws = static_cast<const W*>(w.values.data);
        const bool aligned = reinterpret_cast<uintptr_t>(ws) % 16 == 0 && k % kVector == 0;
        if (aligned_x && aligned) return use(SimtRows<W, kVector>(), ws, k);
        use(SimtRows<W, 1>(), ws, k);
    };
    if (stored == Dtype::i8) return of_values(int8_t());
    if (stored == Dtype::fp8) return of_values(fp8_t());
    with_float_type(stored, of_values);
}

// y (T, N) for R rows of x and O outputs per warp, for types and sizes that the matrix units do not
// take. Each lane sums the products of its columns in order; a tree adds the lanes' sums. A row's
// bits depend neither on R and O nor on the number of rows.
template <class X, class Rows, int R, int O>
__global__ void __launch_bounds__(32 * kSimtWarps)
    simt_kernel(SmallMArgs args, const X* x, const typename Rows::Stored* __restrict__ w,
                int64_t stride) {
    constexpr int V = Rows::kVector;
    pdl_trigger();
    pdl_wait();
    const int lane = threadIdx.x % 32;
    const int64_t n = (int64_t{blockIdx.x} * kSimtWarps + threadIdx.x / 32) * O;
    const int64_t t = int64_t{blockIdx.y} * R;
    if (n >= args.n) return;
    const X* xs[R];  // past the end the last row and output are computed again and not written
    const typename Rows::Stored* ws[O];
    for (int r = 0; r < R; ++r) xs[r] = x + min(t + r, args.rows - 1) * args.k;
    for (int o = 0; o < O; ++o) ws[o] = w + min(n + o, args.n - 1) * stride;
    float sums[R][O] = {};
#pragma unroll Rows::kUnroll
    for (int64_t k = int64_t{lane} * V; k < args.k; k += 32 * V) {
        decltype(Rows::load(ws[0], k)) weights[O];
        for (int o = 0; o < O; ++o) weights[o] = Rows::load(ws[o], k);
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
            // One lane per output, so that the stores are spread over the warp.
            if (lane != r * O + o || t + r >= args.rows || n + o >= args.n) continue;
            const int64_t at = (t + r) * args.n + n + o;
            store_any(
                args.y, args.y_type, at,
                apply_epilogue(args, epilogue_params(args, n + o), sum, residual_at(args, at)));
        }
    }
}

// stride: from one row of the weights to the next.
template <class Rows, class X>
void launch_simt(Context& ctx, const SmallMArgs& args, const X* x, const typename Rows::Stored* w,
                 int64_t stride) {
    const auto launch = [&](auto kernel, int rows, int outputs) {
        const dim3 grid(static_cast<unsigned>(ceil_div(args.n, kSimtWarps * outputs)),
                        static_cast<unsigned>(ceil_div(args.rows, rows)));
        pdl_launch(ctx, kernel, grid, 32 * kSimtWarps, 0, args, x, w, stride);
    };
    if (args.rows == 1) return launch(simt_kernel<X, Rows, 1, 1>, 1, 1);
    if (args.rows <= 4) return launch(simt_kernel<X, Rows, 4, 2>, 4, 2);
    launch(simt_kernel<X, Rows, kMostRows, 2>, kMostRows, 2);
}

}  // namespace hark::cuda
