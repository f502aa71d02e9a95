// layer_norm on the GPU: one pass over memory, two over the registers of a row.
#include "kernels/norm/layer_norm.cuh"

namespace hark::cuda {
namespace {

constexpr int kWarps = 4;  // rows per block if a warp takes a row
constexpr int kThreadsOfAny = 256;
constexpr int kMostPacks = 8;  // per lane

// Above this many rows, if they are wide and of 16 bits, one warp per row keeps the memory busier;
// otherwise one block per row (docs/kernels/cuda.md).
constexpr int64_t kFewRows = 512, kNarrow = 256;
constexpr int64_t kMostInWarp = 32 * kMostPacks * kPack, kMostInBlock = 1024 * kPack;

struct NormData {
    const float *w, *b;
    int64_t rows;
    int channels;
    float eps;
};

// The same in one warp whose lanes have P packs each, those of P warps of a block. The sums are
// added in block_sum's order, so a row's bits do not depend on the kernel.
template <int P>
__device__ float pack_sum(const float (&sums)[P]) {
    float all[kMostPacks] = {};
    for (int p = 0; p < P; ++p) all[p] = warp_sum(sums[p]);
    for (int step = kMostPacks / 2; step > 0; step /= 2)
        for (int p = 0; p < step; ++p) all[p] += all[p + step];
    return all[0];
}

// One block per row, one pack per thread.
template <class X, class Y>
__global__ void __launch_bounds__(1024) block_norm_kernel(NormData args, Y* y, const X* x) {
    pdl_trigger();
    const int64_t row = int64_t{blockIdx.x} * args.channels;
    const NormPack of(args.w, args.b, args.channels);
    pdl_wait();
    norm_row(y + row, x + row, args.channels, args.eps, of);
}

// One warp per row, P packs per lane, kept in the stored type.
template <class X, class Y, int P>
__global__ void __launch_bounds__(32 * kWarps) warp_norm_kernel(NormData args, Y* y, const X* x) {
    pdl_trigger();
    pdl_wait();
    const int lane = threadIdx.x % 32;
    const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
    if (row >= args.rows) return;
    const int64_t start = row * args.channels;
    const auto column = [&](int p) { return (p * 32 + lane) * kPack; };
    Pack<X, kPack> values[P];
    const float origin = to_f32(x[start]);
    for (int p = 0; p < P; ++p)
        if (column(p) < args.channels) values[p] = load_pack<kPack>(x + start + column(p));
    float sums[P] = {}, squares[P] = {};
    for (int p = 0; p < P; ++p)
        if (column(p) < args.channels) add_values(sums[p], shifted(values[p], origin));
    const float mean = pack_sum(sums) / args.channels;
    for (int p = 0; p < P; ++p)
        if (column(p) < args.channels) add_squares(squares[p], shifted(values[p], origin, mean));
    const float factor = rsqrtf(pack_sum(squares) / args.channels + args.eps);
    for (int p = 0; p < P; ++p) {
        if (column(p) >= args.channels) continue;
        const Pack<float, kPack> w = load_pack<kPack>(args.w + column(p));
        const Pack<float, kPack> b = load_pack<kPack>(args.b + column(p));
        store_norm(y + start + column(p), shifted(values[p], origin, mean), factor, w, b);
    }
}

// Rows of any width and alignment, read three times; one block per row.
template <class X, class Y>
__global__ void __launch_bounds__(kThreadsOfAny) any_norm_kernel(NormData args, Y* y, const X* x) {
    pdl_trigger();
    pdl_wait();
    __shared__ float partial[2][32];
    const X* from = x + int64_t{blockIdx.x} * args.channels;
    Y* to = y + int64_t{blockIdx.x} * args.channels;
    const float origin = to_f32(from[0]);
    float sum = 0, squares = 0;
    for (int c = threadIdx.x; c < args.channels; c += kThreadsOfAny)
        sum += to_f32(from[c]) - origin;
    const float mean = block_sum(sum, partial[0], kThreadsOfAny / 32) / args.channels;
    for (int c = threadIdx.x; c < args.channels; c += kThreadsOfAny) {
        const float value = to_f32(from[c]) - origin - mean;
        squares = fmaf(value, value, squares);
    }
    const float variance = block_sum(squares, partial[1], kThreadsOfAny / 32) / args.channels;
    const float factor = rsqrtf(variance + args.eps);
    for (int c = threadIdx.x; c < args.channels; c += kThreadsOfAny) {
        const float value = to_f32(from[c]) - origin - mean;
        to[c] = from_f32<Y>(fmaf(value * factor, args.w[c], args.b[c]));
    }
}

template <class X, class Y>
void launch(Context& ctx, const NormData& args, Y* y, const X* x) {
    const auto rows = static_cast<unsigned>(args.rows);
    const auto warps = static_cast<unsigned>(ceil_div(args.channels, 32 * kPack));  // per row
    if (!in_packs(args.channels, {x, y, args.w, args.b}) || args.channels > kMostInBlock) {
        return pdl_launch(ctx, any_norm_kernel<X, Y>, rows, kThreadsOfAny, 0, args, y, x);
    }
    if constexpr (sizeof(X) == 2) {
        if (args.rows > kFewRows && args.channels > kNarrow && args.channels <= kMostInWarp) {
            const auto kernel = warps <= 2   ? warp_norm_kernel<X, Y, 2>
                                : warps <= 4 ? warp_norm_kernel<X, Y, 4>
                                : warps <= 5 ? warp_norm_kernel<X, Y, 5>
                                             : warp_norm_kernel<X, Y, kMostPacks>;
            return pdl_launch(ctx, kernel, static_cast<unsigned>(ceil_div(rows, kWarps)),
                              32 * kWarps, 0, args, y, x);
        }
    }
    pdl_launch(ctx, block_norm_kernel<X, Y>, rows, 32 * warps, 0, args, y, x);
}

}  // namespace

void layer_norm(Context& ctx, Tensor y, Tensor x, Tensor w, Tensor b, float eps) {
    const int64_t channels = x.dim(-1), rows = x.rows();
    enter(ctx, {&y, &x, &w, &b});
    if (rows == 0) return;
    const NormData args{w.as<float>(), b.as<float>(), rows, static_cast<int>(channels), eps};
    with_float_type(y.dtype, [&](auto y_value) {
        using Y = decltype(y_value);
        auto* to = static_cast<Y*>(y.data);
        if (x.dtype == Dtype::f32) return launch(ctx, args, to, x.as<float>());
        if constexpr (sizeof(Y) == 2) launch(ctx, args, to, static_cast<const Y*>(x.data));
    });
}

}  // namespace hark::cuda
