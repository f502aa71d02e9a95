// rms_norm's gradient on the GPU. A block takes every gridDim.x-th row; a thread adds its columns'
// gradients of w, and of dx, over all the block's rows.
#include "kernels/elementwise/elementwise.cuh"
#include "kernels/linear/column_sums.cuh"

namespace hark::cuda {
namespace {

constexpr int kRmsThreads = 256;

struct RmsBackward {
    const float* w;
    float* partial;  // (blocks, kinds * C): of dw, then of dx
    int64_t rows, channels;
    float eps;
};

// The sums of two values over the block; every thread gets them. The first barrier protects the
// sums of the previous call.
__device__ float2 sums_of_block(float a, float b) {
    __shared__ float2 partial[kRmsThreads / 32];
    a = warp_sum(a), b = warp_sum(b);
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = make_float2(a, b);
    __syncthreads();
    float2 total = partial[0];
    for (int i = 1; i < kRmsThreads / 32; ++i) total.x += partial[i].x, total.y += partial[i].y;
    return total;
}

// With y = x * inverse * w: g = dy w, dx += inverse (g - x inverse^2 * mean of (g x)).
template <class T, bool kSums>
__global__ void __launch_bounds__(kRmsThreads)
    rms_backward_kernel(RmsBackward args, T* dx, const T* __restrict__ dy,
                        const T* __restrict__ x) {
    const auto count = static_cast<float>(args.channels);
    float* dw = args.partial + int64_t{blockIdx.x} * (kSums ? 2 : 1) * args.channels;
    float* sums = dw + args.channels;
    for (int64_t c = threadIdx.x; c < args.channels; c += kRmsThreads) {
        dw[c] = 0;
        if constexpr (kSums) sums[c] = 0;
    }
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        const int64_t start = row * args.channels;
        float squares = 0, projected = 0;
        for (int64_t c = threadIdx.x; c < args.channels; c += kRmsThreads) {
            const float value = to_f32(x[start + c]);
            squares = fmaf(value, value, squares);
            projected = fmaf(to_f32(dy[start + c]) * args.w[c], value, projected);
        }
        const float2 total = sums_of_block(squares, projected);
        const float inverse = 1.0f / sqrtf(total.x / count + args.eps);
        const float factor = inverse * inverse * (total.y / count);
        for (int64_t c = threadIdx.x; c < args.channels; c += kRmsThreads) {
            const float from = to_f32(dy[start + c]), value = to_f32(x[start + c]);
            const float gradient = inverse * (from * args.w[c] - value * factor);
            const T out = from_f32<T>(to_f32(dx[start + c]) + gradient);
            dx[start + c] = out;
            dw[c] = fmaf(from, value * inverse, dw[c]);
            if constexpr (kSums) sums[c] += to_f32(out);
        }
    }
}

// Computes dx and returns the blocks' partial sums.
template <class T, bool kSums>
Tensor run_rms_norm_backward(Context& ctx, const Tensor& dx, const Tensor& dy, const Tensor& x,
                             const Tensor& w, float eps) {
    const int64_t rows = x.dim(0), channels = x.dim(1);
    const auto kernel = rms_backward_kernel<T, kSums>;
    const int64_t blocks = std::min(rows, blocks_at_once(ctx, kernel, kRmsThreads, 0));
    const Tensor partial = ctx.arena.tensor(Dtype::f32, {blocks, (kSums ? 2 : 1) * channels});
    const RmsBackward args{w.as<float>(), partial.as<float>(), rows, channels, eps};
    kernel<<<static_cast<unsigned>(blocks), kRmsThreads, 0, stream_of(ctx)>>>(
        args, static_cast<T*>(dx.data), static_cast<const T*>(dy.data),
        static_cast<const T*>(x.data));
    CUDA_CHECK(cudaGetLastError());
    return partial;
}

}  // namespace

void rms_norm_backward(Context& ctx, Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, float eps,
                       Tensor sums) {
    enter(ctx, {&dx, &dw, &dy, &x, &w, &sums});
    if (x.dim(0) == 0) return;
    const Arena::Scope scope(ctx.arena);
    Tensor partial;
    with_activation_type("rms_norm_backward", x, [&](auto value) {
        using T = decltype(value);
        partial = sums ? run_rms_norm_backward<T, true>(ctx, dx, dy, x, w, eps)
                       : run_rms_norm_backward<T, false>(ctx, dx, dy, x, w, eps);
    });
    add_partials(ctx, dw, partial, 0);
    if (sums) add_partials(ctx, sums, partial, x.dim(1));
}

}  // namespace hark::cuda
