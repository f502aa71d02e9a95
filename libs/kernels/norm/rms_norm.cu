// rms_norm on the GPU: one block per row.
#include "kernels/elementwise/rows.cuh"
#include "kernels/norm/rms_norm.cuh"

namespace hark::cuda {
namespace {

struct RmsNorm {
    const float* w;
    int channels;
    float eps;
};

// Rows of a pack per thread, whose weights are read before the wait.
template <class X, class Y>
__global__ void rms_norm_packs(RmsNorm args, Y* y, const X* x) {
    pdl_trigger();
    const int64_t row = int64_t{blockIdx.x} * args.channels;
    const RmsWeights<1> weights(args.w, args.channels);
    pdl_wait();
    rms_norm_row(y + row, x + row, args.channels, args.eps, weights);
}

// V values at a time; V divides the channels, and rows of V values are aligned.
template <int V, class X, class Y>
__global__ void rms_norm_kernel(RmsNorm args, Y* y, const X* x) {
    pdl_trigger();
    __shared__ float partial[32];
    const int64_t row = int64_t{blockIdx.x} * args.channels;
    pdl_wait();
    float squares = 0;
    for (int c = threadIdx.x * V; c < args.channels; c += blockDim.x * V) {
        const Pack<X, V> values = load_pack<V>(x + row + c);
        for (int v = 0; v < V; ++v) {
            const float value = to_f32(values.values[v]);
            squares = fmaf(value, value, squares);
        }
    }
    const float mean = block_sum(squares, partial, blockDim.x / 32) / args.channels;
    const float factor = rsqrtf(mean + args.eps);
    for (int c = threadIdx.x * V; c < args.channels; c += blockDim.x * V) {
        const Pack<X, V> values = load_pack<V>(x + row + c);
        Pack<Y, V> out;
        for (int v = 0; v < V; ++v)
            out.values[v] = from_f32<Y>(to_f32(values.values[v]) * factor * args.w[c + v]);
        store_pack(y + row + c, out);
    }
}

}  // namespace

void rms_norm(Context& ctx, Tensor y, Tensor x, Tensor w, float eps) {
    const int64_t channels = x.dim(-1), rows = x.rows();
    enter(ctx, {&y, &x, &w});
    if (rows == 0) return;
    const RmsNorm args{w.as<float>(), static_cast<int>(channels), eps};
    const bool packs = in_packs(channels, {y.data, x.data, w.data});
    const int64_t wanted = ceil_div(channels, packs ? kPack : 1);
    const auto threads = static_cast<unsigned>(
        std::clamp(ceil_div(wanted, 32) * 32, int64_t{32}, int64_t{kMostRmsThreads}));
    with_float_type(y.dtype, [&](auto y_value) {
        using Y = decltype(y_value);
        const auto launch = [&](const auto* from) {
            using X = std::remove_cvref_t<decltype(*from)>;
            const auto kernel = packs && wanted <= threads ? rms_norm_packs<X, Y>
                                : packs                    ? rms_norm_kernel<kPack, X, Y>
                                                           : rms_norm_kernel<1, X, Y>;
            pdl_launch(ctx, kernel, static_cast<unsigned>(rows), threads, 0, args,
                       static_cast<Y*>(y.data), from);
        };
        if (x.dtype == Dtype::f32) return launch(static_cast<const float*>(x.as<float>()));
        if constexpr (sizeof(Y) == 2) launch(static_cast<const Y*>(x.data));
    });
}

}  // namespace hark::cuda
