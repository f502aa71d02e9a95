// expert_linear on the GPU: a warp computes a few outputs of one pair, from the weights of the
// expert that the device's memory names. Pairs are the fast dimension of the grid, so that blocks
// that run at a time read the same outputs of all experts, which the L2 cache has room for.
#include "kernels/elementwise/rows.cuh"
#include "kernels/linear/simt.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {
namespace {

constexpr int kOutputs = 2;  // per warp

struct ExpertArgs {
    int64_t n, k, stride, pairs_per_row;
    int experts;
    const float *scales, *bias;  // of all experts, or null
};

template <class X, class Rows>
__global__ void __launch_bounds__(32 * kSimtWarps)
    expert_kernel(ExpertArgs args, X* y, const X* x, const typename Rows::Stored* __restrict__ w,
                  const int* chosen) {
    constexpr int V = Rows::kVector;
    let_next_start();
    wait_for_previous();
    const int lane = threadIdx.x % 32;
    const int64_t pair = blockIdx.x;
    const int64_t n = (int64_t{blockIdx.y} * kSimtWarps + threadIdx.x / 32) * kOutputs;
    if (n >= args.n) return;
    const int expert = chosen[pair];
    if (expert < 0 || expert >= args.experts) {
        if (lane < kOutputs && n + lane < args.n) y[pair * args.n + n + lane] = from_f32<X>(NAN);
        return;
    }
    const X* row = x + pair / args.pairs_per_row * args.k;
    const typename Rows::Stored*
        ws[kOutputs];  // past the end the last output, which is not written
    for (int o = 0; o < kOutputs; ++o)
        ws[o] = w + (expert * args.n + min(n + o, args.n - 1)) * args.stride;
    float sums[kOutputs] = {};
#pragma unroll Rows::kUnroll
    for (int64_t k = int64_t{lane} * V; k < args.k; k += 32 * V) {
        const Pack<X, V> inputs = load_pack<V>(row + k);
        for (int o = 0; o < kOutputs; ++o) {
            const auto weights = Rows::load(ws[o], k);
            for (int v = 0; v < V; ++v)
                sums[o] = fmaf(to_f32(inputs.values[v]), to_f32(weights.values[v]), sums[o]);
        }
    }
    for (int o = 0; o < kOutputs; ++o) {
        const float sum = warp_sum(sums[o]);
        if (lane != o || n + o >= args.n) continue;
        const int64_t at = expert * args.n + n + o;
        const float scaled = args.scales ? sum * args.scales[at] : sum;
        y[pair * args.n + n + o] = from_f32<X>(args.bias ? scaled + args.bias[at] : scaled);
    }
}

template <class Rows, class X>
void launch(Context& ctx, const ExpertArgs& args, Tensor y, const X* x,
            const typename Rows::Stored* w, const int* chosen) {
    const dim3 grid(static_cast<unsigned>(y.dim(0)),
                    static_cast<unsigned>(ceil_div(args.n, kSimtWarps * kOutputs)));
    launch_early(ctx, expert_kernel<X, Rows>, grid, 32 * kSimtWarps, 0, args,
                 static_cast<X*>(y.data), x, w, chosen);
}

template <class W, class X>
void launch_values(Context& ctx, const ExpertArgs& args, Tensor y, const X* x, const W* w,
                   const int* chosen) {
    constexpr int kVector = 16 / sizeof(W);
    if (in_packs(0, {x, w}) && args.k % kVector == 0 && args.k * sizeof(X) % 16 == 0)
        return launch<SimtRows<W, kVector>>(ctx, args, y, x, w, chosen);
    launch<SimtRows<W, 1>>(ctx, args, y, x, w, chosen);
}

// Checks that the matrices are stored one after another, as one (E * N, K) with scales (E * N).
void check_stacked(const ExpertMatrices& w) {
    const Matrix& first = w.each.front();
    const auto at = [](const Tensor& tensor) { return static_cast<const std::byte*>(tensor.data); };
    for (size_t e = 0; e < w.each.size(); ++e) {
        const Matrix& one = w.each[e];
        require(
            one.values.dtype == first.values.dtype &&
                at(one.values) == at(first.values) + e * first.values.bytes() &&
                (!first.scales || at(one.scales) == at(first.scales) + e * first.scales.bytes()),
            "expert_linear: expected experts of one type, one after another, found ", one.values,
            " after ", first.values);
    }
}

}  // namespace

void expert_linear(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w, Tensor chosen) {
    const Matrix& first = w.each.front();
    const Dtype stored = first.values.dtype;
    enter(ctx, {&y, &x, &chosen, &first.values, &first.scales, &w.bias});
    check_stacked(w);
    const int64_t n = y.dim(1), k = x.dim(1);
    require(ceil_div(n, kSimtWarps * kOutputs) <= kMostGridY, "expert_linear: expected at most ",
            kMostGridY * kSimtWarps * kOutputs, " outputs on the GPU, found ", n);
    const bool blocks = is_quantized(stored);
    const ExpertArgs args{n,
                          k,
                          blocks ? static_cast<int64_t>(row_bytes(stored, k)) : k,
                          y.dim(0) / x.dim(0),
                          static_cast<int>(w.each.size()),
                          first.scales ? first.scales.as<float>() : nullptr,
                          w.bias ? w.bias.as<float>() : nullptr};
    const int* experts = chosen.as<int32_t>();
    with_float_type(x.dtype, [&](auto x_type) {
        const auto* from = static_cast<const decltype(x_type)*>(x.data);
        if (blocks) {
            require(in_packs(0, {x.data}), "expert_linear: expected x aligned to 16 bytes");
            return with_block_type(stored, [&](auto block) {
                launch<BlockRows<decltype(block)>>(
                    ctx, args, y, from, static_cast<const uint8_t*>(first.values.data), experts);
            });
        }
        if (stored == Dtype::i8)
            return launch_values(ctx, args, y, from, first.values.as<int8_t>(), experts);
        with_float_type(stored, [&](auto w_type) {
            launch_values(ctx, args, y, from,
                          static_cast<const decltype(w_type)*>(first.values.data), experts);
        });
    });
}

}  // namespace hark::cuda
