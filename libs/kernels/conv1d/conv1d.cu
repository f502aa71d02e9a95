// conv1d on the GPU: windows gathered into scratch, then the product.
#include "kernels/elementwise/rows.cuh"

namespace hark::cuda {
namespace {

// Bytes of windows that are gathered and multiplied at a time: they stay in the L2 cache in
// between. A sequence is never divided.
constexpr int64_t kWindowBytes = int64_t{32} << 20;

struct Windows {
    int64_t rows, t_in, t_out, channels;
    int stride;
};

// windows (rows, 3C). With channels last and taps outermost, a row is one piece of x; what is past
// either end of its sequence is zero.
template <int V, class X, class Y>
__global__ void windows_kernel(Windows args, Y* __restrict__ windows, const X* __restrict__ x) {
    const int64_t row = row_of_thread(), width = 3 * args.channels;
    if (row >= args.rows) return;
    const int64_t b = row / args.t_out, t = row - b * args.t_out;
    const int64_t first = (t * args.stride - 1) * args.channels, end = args.t_in * args.channels;
    const X* from = x + b * end;
#pragma unroll 2
    for (int64_t c = int64_t{threadIdx.x} * V; c < width; c += int64_t{blockDim.x} * V) {
        Pack<X, V> values{};
        if (first + c >= 0 && first + c < end) values = load_pack<V>(from + first + c);
        store_pack(windows + row * width + c, convert_pack<Y>(values));
    }
}

void gather(Context& ctx, Tensor windows, Tensor x, Windows args) {
    const bool packs = in_packs(args.channels, {windows.data, x.data});
    const RowGrid grid(args.rows, 3 * args.channels / (packs ? kPack : 1));
    with_float_type(windows.dtype, [&](auto y_value) {
        with_float_type(x.dtype, [&](auto x_value) {
            using X = decltype(x_value);
            using Y = decltype(y_value);
            if constexpr (std::is_same_v<X, Y> || std::is_same_v<X, float>) {
                const auto kernel = packs ? windows_kernel<kPack, X, Y> : windows_kernel<1, X, Y>;
                kernel<<<grid.blocks, grid.threads, 0, stream_of(ctx)>>>(
                    args, static_cast<Y*>(windows.data), static_cast<const X*>(x.data));
            }
        });
    });
    CUDA_CHECK(cudaGetLastError());
}

}  // namespace

void conv1d(Context& ctx, Tensor y, Tensor x, const Matrix& w, int stride, const Epilogue& then) {
    const int64_t channels = x.dim(-1), t_in = x.dim(-2), n = w.values.dim(0);
    const int64_t sequences = x.rank == 3 ? x.dim(0) : 1;
    const int64_t t_out = y.rows() / std::max(sequences, int64_t{1});
    enter(ctx, {&y, &x});
    if (y.size() == 0) return;
    const Arena::Scope scope(ctx.arena);
    const Dtype dtype = x.dtype == Dtype::f32 ? y.dtype : x.dtype;
    const int64_t bytes = t_out * 3 * channels * static_cast<int64_t>(size_of(dtype));
    const int64_t step = std::clamp(kWindowBytes / bytes, int64_t{1}, sequences);
    const Tensor windows = ctx.arena.tensor(dtype, {step * t_out, 3 * channels});
    const Tensor from = x.reshaped({sequences, t_in, channels});
    const Tensor to = y.reshaped({sequences * t_out, n});
    for (int64_t b = 0; b < sequences; b += step) {
        const int64_t end = std::min(sequences, b + step), rows = (end - b) * t_out;
        gather(ctx, windows, from.slice(b, end), {rows, t_in, t_out, channels, stride});
        Epilogue own = then;
        if (then.residual)
            own.residual =
                then.residual.reshaped({sequences * t_out, n}).slice(b * t_out, end * t_out);
        cuda::linear(ctx, to.slice(b * t_out, end * t_out), windows.slice(0, rows), w, own, {});
    }
}

}  // namespace hark::cuda
