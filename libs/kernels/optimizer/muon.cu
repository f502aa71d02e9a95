#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/cuda/cuda_common.cuh"
#include "kernels/linear/matrix_product.cuh"

namespace hark::cuda {
namespace {

constexpr int kMuonThreads = 256;
constexpr int kIterations = 5;
constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;

// f(i) for each of n elements.
template <class F>
__device__ void for_each(int64_t n, F&& f) {
    for (int64_t i = int64_t{blockIdx.x} * kMuonThreads + threadIdx.x; i < n;
         i += int64_t{gridDim.x} * kMuonThreads)
        f(i);
}

template <class... Parameters, class... Arguments>
void launch(Context& ctx, void (*kernel)(Parameters...), int64_t n, Arguments... arguments) {
    const auto blocks =
        static_cast<unsigned>(std::min<int64_t>(ceil_div(n, kMuonThreads), 132 * 16));
    kernel<<<blocks, kMuonThreads, 0, stream_of(ctx)>>>(arguments..., n);
    CUDA_CHECK(cudaGetLastError());
}

// y = x / (norm[0] + 1e-7)
template <class T>
__global__ void normalize_kernel(T* y, const float* x, const float* norm, int64_t n) {
    const float inverse = 1 / (norm[0] + 1e-7f);
    for_each(n, [&](int64_t i) { y[i] = from_f32<T>(x[i] * inverse); });
}

template <class T>
__global__ void widen_kernel(float* y, const T* x, int64_t n) {
    for_each(n, [&](int64_t i) { y[i] = to_f32(x[i]); });
}

// The momentum m, and Nesterov's step along it in `update`.
__global__ void momentum_kernel(float* update, float* m, const float* g, const float* clip,
                                float momentum, int64_t n) {
    if (!isfinite(clip[0])) return;
    for_each(n, [&](int64_t i) {
        const float now = g[i] * clip[1];
        m[i] += (1 - momentum) * (now - m[i]);
        update[i] = now + momentum * (m[i] - now);
    });
}

__global__ void apply_kernel(float* p, const float* update, const float* clip, float keep,
                             float rate, int64_t n) {
    if (!isfinite(clip[0])) return;
    for_each(n, [&](int64_t i) { p[i] = p[i] * keep - rate * update[i]; });
}

// y (N, K) f32 from x (N, K) f32, with products of type T: X becomes a X + (b A + c A^2) X with A =
// X X^T. If X is tall, the equal a X + X (b A + c A^2) with A = X^T X.
template <class T>
void iterate(Context& ctx, Tensor y, Tensor x, Dtype type) {
    const int64_t n = x.dim(0), k = x.dim(1), side = std::min(n, k), size = n * k;
    const bool wide = n <= k;
    Tensor norm = ctx.arena.tensor(Dtype::f32, {2});
    Tensor now = ctx.arena.tensor(type, {n, k}), next = ctx.arena.tensor(type, {n, k});
    Tensor a = ctx.arena.tensor(type, {side, side}), b = ctx.arena.tensor(type, {side, side});
    cuda::clip_by_norm(ctx, norm, x.reshaped({size}), 0);
    launch(ctx, normalize_kernel<T>, size, static_cast<T*>(now.data), x.as<float>(),
           norm.as<float>());
    for (int i = 0; i < kIterations; ++i) {
        multiply_matrices(ctx, a, {now, !wide}, {now, wide}, {});
        multiply_matrices(ctx, b, {a}, {a}, {.added = a, .product_factor = kC, .added_factor = kB});
        const Factor left = wide ? Factor{b} : Factor{now}, right = wide ? Factor{now} : Factor{b};
        multiply_matrices(ctx, next, left, right, {.added = now, .added_factor = kA});
        std::swap(now, next);
    }
    launch(ctx, widen_kernel<T>, size, y.as<float>(), static_cast<const T*>(now.data));
}

void orthogonalize_by(Context& ctx, Tensor y, Tensor x, Dtype products) {
    const Arena::Scope scope(ctx.arena);
    if (products == Dtype::bf16) return iterate<__nv_bfloat16>(ctx, y, x, products);
    iterate<float>(ctx, y, x, products);
}

}  // namespace

void orthogonalize(Context& ctx, Tensor y, Tensor x) {
    enter(ctx, {&y, &x});
    orthogonalize_by(ctx, y, x, Dtype::f32);
}

void muon(Context& ctx, Tensor p, Tensor m, Tensor g, Tensor clip, const Muon& with) {
    const int64_t n = p.dim(0), k = p.dim(1);
    enter(ctx, {&p, &m, &g, &clip});
    const Arena::Scope scope(ctx.arena);
    Tensor update = ctx.arena.tensor(Dtype::f32, {n, k});
    launch(ctx, momentum_kernel, n * k, update.as<float>(), m.as<float>(), g.as<float>(),
           clip.as<float>(), with.momentum);
    orthogonalize_by(ctx, update, update, with.products);
    const float rate = with.rate * 0.2f * std::sqrt(static_cast<float>(std::max(n, k)));
    launch(ctx, apply_kernel, n * k, p.as<float>(), update.as<float>(), clip.as<float>(),
           1 - with.rate * with.decay, rate);
}

}  // namespace hark::cuda
