#include "kernels/linear/fp8_rows.cuh"

#include <cuda_fp8.h>

#include <algorithm>

#include "core/fp8.h"
#include "kernels/cuda/hopper.cuh"
#include "kernels/norm/layer_norm.cuh"
#include "kernels/norm/rms_norm.cuh"

namespace hark::cuda {
namespace {

// Threads per block; with a norm, and up to that many packs, one for each.
constexpr int kMostFp8Threads = 1024;
constexpr int kFp8Pack = kPack;

struct Fp8RowsArgs {
    uint2* to;
    float* scales;
    int packs;  // of a row
    const float *norm_weight, *norm_bias;
    float norm_eps;
    int32_t* zeros;
    int n_zeros;
};

// The first block sets them.
__device__ inline void set_zeros(const Fp8RowsArgs& args) {
    if (blockIdx.x > 0) return;
    for (int i = threadIdx.x; i < args.n_zeros; i += blockDim.x) args.zeros[i] = 0;
}

__device__ inline uint32_t two_fp8(float low, float high) {
    return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

// Block: a row of x. It is read twice, the second time from the caches or from shared memory.
template <class X, bool Normed>
__global__ void __launch_bounds__(kMostFp8Threads) fp8_rows_kernel(Fp8RowsArgs args, const X* x) {
    pdl_trigger();
    extern __shared__ __align__(16) unsigned char normed[];  // (K) of X
    __shared__ float largest_of[kMostFp8Threads / 32];
    const int k = args.packs * kFp8Pack;
    const int64_t first = int64_t{blockIdx.x} * args.packs;
    const X* row = x + first * kFp8Pack;
    const NormPack norm(args.norm_weight, args.norm_bias, Normed ? k : 0);
    pdl_wait();
    set_zeros(args);
    if constexpr (Normed) {  // each thread then reads what it has written
        norm_row(reinterpret_cast<X*>(normed), row, k, args.norm_eps, norm);
        row = reinterpret_cast<const X*>(normed);
    }
    float largest = 0;
    for (int i = threadIdx.x; i < args.packs; i += blockDim.x) {
        const Pack<X, kFp8Pack> in = load_pack<kFp8Pack>(row + i * kFp8Pack);
        for (int v = 0; v < kFp8Pack; ++v) largest = fmaxf(largest, fabsf(to_f32(in.values[v])));
    }
    largest = fmaxf(block_max(largest, largest_of), kLeastFp8Row);
    const float inverse = __fdiv_rn(kLargestFp8, largest);
    if (threadIdx.x == 0) args.scales[blockIdx.x] = __fdiv_rn(largest, kLargestFp8);
    for (int i = threadIdx.x; i < args.packs; i += blockDim.x) {
        const Pack<X, kFp8Pack> in = load_pack<kFp8Pack>(row + i * kFp8Pack);
        uint32_t pairs[kFp8Pack / 2];
        for (int v = 0; v < kFp8Pack; v += 2)
            pairs[v / 2] = two_fp8(__fmul_rn(to_f32(in.values[v]), inverse),
                                   __fmul_rn(to_f32(in.values[v + 1]), inverse));
        args.to[first + i] = make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
    }
}

// The same of an rms_norm of x, whose bits are those of rms_norm's kernel of a pack per thread.
template <class X>
__global__ void __launch_bounds__(kMostRmsThreads)
    rms_fp8_rows_kernel(Fp8RowsArgs args, const X* x) {
    pdl_trigger();
    __shared__ float partial[32], largest_of[kMostRmsThreads / 32];
    const bool inside = threadIdx.x < args.packs;
    const int64_t at = int64_t{blockIdx.x} * args.packs + threadIdx.x;
    Pack<float, kFp8Pack> w{};
    if (inside) w = load_pack<kFp8Pack>(args.norm_weight + threadIdx.x * kFp8Pack);
    pdl_wait();
    set_zeros(args);
    Pack<X, kFp8Pack> in{};
    if (inside) in = load_pack<kFp8Pack>(x + at * kFp8Pack);
    float squares = 0, largest = 0, values[kFp8Pack];
    for (const X value : in.values) squares = fmaf(to_f32(value), to_f32(value), squares);
    const float mean = block_sum(squares, partial, blockDim.x / 32) / (args.packs * kFp8Pack);
    const float factor = rsqrtf(mean + args.norm_eps);
    for (int v = 0; v < kFp8Pack; ++v) {
        values[v] = to_f32(from_f32<X>(to_f32(in.values[v]) * factor * w.values[v]));
        largest = fmaxf(largest, fabsf(values[v]));
    }
    largest = fmaxf(block_max(largest, largest_of), kLeastFp8Row);
    const float inverse = __fdiv_rn(kLargestFp8, largest);
    if (threadIdx.x == 0) args.scales[blockIdx.x] = __fdiv_rn(largest, kLargestFp8);
    if (!inside) return;
    uint32_t pairs[kFp8Pack / 2];
    for (int v = 0; v < kFp8Pack; v += 2)
        pairs[v / 2] = two_fp8(__fmul_rn(values[v], inverse), __fmul_rn(values[v + 1], inverse));
    args.to[at] = make_uint2(pairs[0] | pairs[1] << 16, pairs[2] | pairs[3] << 16);
}

}  // namespace

bool takes_fp8_rows(const Tensor& x, const Matrix& w) {
    const uintptr_t pointers = reinterpret_cast<uintptr_t>(x.data) |
                               reinterpret_cast<uintptr_t>(w.values.data) |
                               reinterpret_cast<uintptr_t>(w.scales.data);
    return w.values.dtype == Dtype::fp8 && is_16_bit(x.dtype) && w.values.dim(1) % 16 == 0 &&
           pointers % 16 == 0 && is_hopper();
}

bool norms_fp8_rows(const Tensor& x, const Norm& norm) {
    const int64_t k = x.dim(-1);
    const int64_t threads = norm.kind == NormKind::layer ? kMostFp8Threads : kMostRmsThreads;
    return k <= threads * kFp8Pack && in_packs(k, {x.data, norm.weight.data, norm.bias.data});
}

Fp8Rows to_fp8_rows(Context& ctx, const Tensor& x, const Norm& norm, const Tensor& zeros) {
    const int64_t rows = x.rows(), k = x.dim(-1);
    const Fp8Rows made = {ctx.arena.tensor(Dtype::fp8, {rows, k}),
                          ctx.arena.tensor(Dtype::f32, {rows})};
    const bool normed(norm.weight), layer = normed && norm.kind == NormKind::layer;
    const Fp8RowsArgs args = {
        static_cast<uint2*>(made.values.data),   made.scales.as<float>(),
        static_cast<int>(k / kFp8Pack),          normed ? norm.weight.as<float>() : nullptr,
        layer ? norm.bias.as<float>() : nullptr, norm.eps,
        zeros ? zeros.as<int32_t>() : nullptr,   zeros ? static_cast<int>(zeros.size()) : 0};
    const int64_t one_each = ceil_div(args.packs, 32) * 32;
    const auto threads =
        static_cast<unsigned>(normed ? one_each : std::min<int64_t>(one_each, kMostFp8Threads));
    const auto launch = [&](auto x_value) {
        using X = decltype(x_value);
        const auto kernel = layer    ? fp8_rows_kernel<X, true>
                            : normed ? rms_fp8_rows_kernel<X>
                                     : fp8_rows_kernel<X, false>;
        pdl_launch(ctx, kernel, static_cast<unsigned>(rows), threads,
                   layer ? static_cast<size_t>(k) * sizeof(X) : 0, args,
                   static_cast<const X*>(x.data));
    };
    if (x.dtype == Dtype::f16) {
        launch(__half{});
    } else {
        launch(__nv_bfloat16{});
    }
    return made;
}

}  // namespace hark::cuda
