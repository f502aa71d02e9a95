// clip_by_norm and adamw on the GPU.
#include <cmath>

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/elementwise/elementwise.cuh"

namespace hark::cuda {
namespace {

constexpr int kUpdateThreads = 256, kThreadsOfLast = 1024, kUpdateAhead = 4;

__device__ double warp_sum(double x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

// The sum over a block's threads, in thread 0.
__device__ double block_sum(double x) {
    __shared__ double sums[32];
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    return threadIdx.x < 32 ? warp_sum(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0)
                            : 0.0;
}

template <int V>
__device__ float squares_of(const Pack<float, V>& values) {
    float sum = 0;
    for (const float value : values.values) sum = fmaf(value, value, sum);
    return sum;
}

// A block's share of the squares: small groups are added in f32, the groups' sums in f64.
template <int V>
__global__ void __launch_bounds__(kUpdateThreads)
    squares_kernel(double* sums, const float* __restrict__ x, int64_t n) {
    const int64_t step = int64_t{gridDim.x} * kUpdateThreads, packs = n / V;
    double sum = 0;
    int64_t i = int64_t{blockIdx.x} * kUpdateThreads + threadIdx.x;
    if (i < n - packs * V) sum += squares_of(load_pack<1>(x + packs * V + i));
    for (; i + (kUpdateAhead - 1) * step < packs; i += kUpdateAhead * step) {
        Pack<float, V> values[kUpdateAhead];
        for (int a = 0; a < kUpdateAhead; ++a) values[a] = load_pack<V>(x + (i + a * step) * V);
        float some = 0;
        for (int a = 0; a < kUpdateAhead; ++a) some += squares_of(values[a]);
        sum += some;
    }
    for (; i < packs; i += step) sum += squares_of(load_pack<V>(x + i * V));
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreadsOfLast)
    norm_kernel(float* clip, const double* sums, int64_t count, float max_norm) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += kThreadsOfLast) sum += sums[i];
    sum = block_sum(sum);
    if (threadIdx.x > 0) return;
    const double norm = sqrt(sum);
    clip[0] = static_cast<float>(norm);
    // NaN stays NaN.
    clip[1] = max_norm > 0 && !(norm + 1e-6 <= max_norm)
                  ? static_cast<float>(max_norm / (norm + 1e-6))
                  : 1.0f;
}

struct Update {
    static constexpr int kValues = 4, kPacks = 1;
    float *p, *m, *v;
    const float *g, *clip;
    int64_t decayed;
    float beta1, beta2, rate, keep, root, eps;

    template <int V, int P>
    __device__ void run(int64_t first, int64_t) const {
        Pack<float, V> ps = load_pack<V>(p + first), ms = load_pack<V>(m + first);
        Pack<float, V> vs = load_pack<V>(v + first);
        const Pack<float, V> gs = load_pack<V>(g + first);
        if (!isfinite(clip[0])) return;
        const float factor = clip[1];
        for (int i = 0; i < V; ++i) {
            const float gradient = gs.values[i] * factor;
            float &moment = ms.values[i], &square = vs.values[i], &value = ps.values[i];
            moment = fmaf(1 - beta1, gradient - moment, moment);
            square = fmaf(square, beta2, (1 - beta2) * (gradient * gradient));
            const float kept = first + i < decayed ? keep : 1.0f;
            value = value * kept - moment * rate / fmaf(sqrtf(square), root, eps);
        }
        store_pack(p + first, ps);
        store_pack(m + first, ms);
        store_pack(v + first, vs);
    }
};

}  // namespace

void clip_by_norm(Context& ctx, Tensor clip, Tensor x, float max_norm) {
    enter(ctx, {&clip, &x});
    const int64_t n = x.dim(0);
    const bool packs = in_16_bytes({x.data});
    constexpr int64_t kMostParts = 2112, kValuesOfPart = 16384;
    const int64_t parts = std::clamp(ceil_div(n, kValuesOfPart), int64_t{1}, kMostParts);
    const Arena::Scope scope(ctx.arena);
    auto* sums = static_cast<double*>(ctx.arena.tensor(Dtype::i64, {parts}).data);
    const auto kernel = packs ? squares_kernel<4> : squares_kernel<1>;
    kernel<<<static_cast<unsigned>(parts), kUpdateThreads, 0, stream_of(ctx)>>>(sums, x.as<float>(),
                                                                                n);
    CUDA_CHECK(cudaGetLastError());
    norm_kernel<<<1, kThreadsOfLast, 0, stream_of(ctx)>>>(clip.as<float>(), sums, parts, max_norm);
    CUDA_CHECK(cudaGetLastError());
}

void adamw(Context& ctx, Tensor p, Tensor m, Tensor v, Tensor g, Tensor clip, int64_t decayed,
           const AdamW& with) {
    const int64_t n = p.dim(0);
    enter(ctx, {&p, &m, &v, &g, &clip});
    const double bias1 = 1 - std::pow(static_cast<double>(with.beta1), with.step);
    const double bias2 = 1 - std::pow(static_cast<double>(with.beta2), with.step);
    const Update update{.p = p.as<float>(),
                        .m = m.as<float>(),
                        .v = v.as<float>(),
                        .g = g.as<float>(),
                        .clip = clip.as<float>(),
                        .decayed = decayed,
                        .beta1 = with.beta1,
                        .beta2 = with.beta2,
                        .rate = static_cast<float>(with.rate / bias1),
                        .keep = 1 - with.rate * with.decay,
                        .root = static_cast<float>(1 / std::sqrt(bias2)),
                        .eps = with.eps};
    for_each(ctx, update, n, in_16_bytes({p.data, m.data, v.data, g.data}));
}

}  // namespace hark::cuda
