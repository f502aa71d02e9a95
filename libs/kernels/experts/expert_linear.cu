// expert_linear on the GPU: the choice between the matrix units (expert_tiles.cuh) and a kernel for
// all else, whose warps compute a few outputs of one pair. Pairs are its grid's fast dimension:
// blocks that run at a time read the same outputs of all experts.
#include "kernels/elementwise/rows.cuh"
#include "kernels/experts/expert_tiles.cuh"
#include "kernels/linear/simt.cuh"
#include "kernels/quant/quantized.cuh"

namespace hark::cuda {
namespace {

constexpr const char* kOp = "expert_linear";
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
    pdl_trigger();
    pdl_wait();
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

}  // namespace

void expert_linear(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& w, Tensor chosen) {
    const Matrix& first = w.each.front();
    enter(ctx, {&y, &x, &chosen, &first.values, &first.scales, &w.bias});
    check_stacked(kOp, w.each);
    if (converted_experts(ctx, y, x, w, chosen) ||
        quantized_experts(ctx, y, x, w, nullptr, chosen, {}) ||
        expert_products(ctx, y, x, w, chosen))
        return;
    const int64_t n = y.dim(1), k = x.dim(1);
    require(ceil_div(n, kSimtWarps * kOutputs) <= kMostGridY, kOp, ": expected at most ",
            kMostGridY * kSimtWarps * kOutputs, " outputs on the GPU, found ", n);
    const dim3 grid(static_cast<unsigned>(y.dim(0)),
                    static_cast<unsigned>(ceil_div(n, kSimtWarps * kOutputs)));
    with_float_type(x.dtype, [&](auto x_type) {
        using X = decltype(x_type);
        const bool packs = in_packs(0, {x.data}) && k * sizeof(X) % 16 == 0;
        with_rows(kOp, first, packs, [&](auto rows, const auto* ws, int64_t stride) {
            const ExpertArgs args{n,
                                  k,
                                  stride,
                                  y.dim(0) / x.dim(0),
                                  static_cast<int>(w.each.size()),
                                  first.scales ? first.scales.as<float>() : nullptr,
                                  w.bias ? w.bias.as<float>() : nullptr};
            pdl_launch(ctx, expert_kernel<X, decltype(rows)>, grid, 32 * kSimtWarps, 0, args,
                       static_cast<X*>(y.data), static_cast<const X*>(x.data), ws,
                       static_cast<const int*>(chosen.as<int32_t>()));
        });
    });
}

void gated_experts(Context& ctx, Tensor y, Tensor x, const ExpertMatrices& gate,
                   const ExpertMatrices& up, Tensor chosen, const Gating& by) {
    for (const ExpertMatrices* w : {&gate, &up}) {
        enter(ctx, {&y, &x, &chosen, &w->each.front().values, &w->bias});
        check_stacked("gated_experts", w->each);
    }
    if (!converts_experts(ctx, y, x, gate) && quantized_experts(ctx, y, x, gate, &up, chosen, by))
        return;
    const Arena::Scope scope(ctx.arena);
    const Tensor gates = ctx.arena.tensor(y.dtype, {y.dim(0), y.dim(1)}),
                 ups = ctx.arena.tensor(y.dtype, {y.dim(0), y.dim(1)});
    cuda::expert_linear(ctx, gates, x, gate, chosen);
    cuda::expert_linear(ctx, ups, x, up, chosen);
    if (by.limit > 0) return cuda::clamped_swiglu(ctx, y, {gates}, {ups}, by.slope, by.limit);
    cuda::gated_activation(ctx, y, {gates}, {ups}, by.activation);
}

}  // namespace hark::cuda
