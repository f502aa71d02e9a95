#include <algorithm>
#include <cmath>

#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/gradients.h"
#include "kernels/linear/onednn.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

constexpr int kIterations = 5;
constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;

// y = factor * x, one factor for `rows` rows of n values.
void scale_rows(Context& ctx, float* y, const float* x, float factor, int64_t rows, int64_t n) {
    parallel_for(ctx.threads, rows,
                 [&](int64_t t) { cpu_kernels().multiply(y + t * n, x + t * n, factor, n); });
}

// x (n, k), n <= k, becomes a X + (b A + c A^2) X with A = X X^T, in place.
void iterate(Context& ctx, float* x, int64_t n, int64_t k) {
    const Arena::Scope scope(ctx.arena);
    float* a = ctx.arena.tensor(Dtype::f32, {n, n}).as<float>();
    float* b = ctx.arena.tensor(Dtype::f32, {n, n}).as<float>();
    float* next = ctx.arena.tensor(Dtype::f32, {n, k}).as<float>();
    onednn::multiply(ctx.threads, a, n, {x, k}, {x, k, true}, n, n, k, false);
    onednn::multiply(ctx.threads, b, n, {a, n}, {a, n}, n, n, n, false);
    parallel_for(ctx.threads, n, [&](int64_t i) {
        for (int64_t j = i * n; j < (i + 1) * n; ++j) b[j] = kB * a[j] + kC * b[j];
    });
    scale_rows(ctx, next, x, kA, n, k);
    onednn::multiply(ctx.threads, next, k, {b, n}, {x, k}, n, k, n, true);
    scale_rows(ctx, x, next, 1, n, k);
}

void transpose(Context& ctx, float* y, const float* x, int64_t rows, int64_t columns) {
    parallel_for(ctx.threads, columns, [&](int64_t j) {
        for (int64_t i = 0; i < rows; ++i) y[j * rows + i] = x[i * columns + j];
    });
}

}  // namespace

void orthogonalize(Context& ctx, Tensor y, Tensor x) {
    check_tensor("orthogonalize", "x", x, Dtype::f32, {-1, -1});
    const int64_t n = x.dim(0), k = x.dim(1);
    check_tensor("orthogonalize", "y", y, Dtype::f32, {n, k});
    if (ctx.on_cuda()) return cuda_ops().orthogonalize(ctx, y, x);
    const Arena::Scope scope(ctx.arena);
    const float* from = x.as<float>();
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += cpu_kernels().sum_of_squares(from + i * k, k);
    const auto inverse = static_cast<float>(1 / (std::sqrt(squares) + 1e-7));
    const bool wide = n <= k;
    float* work = wide ? y.as<float>() : ctx.arena.tensor(Dtype::f32, {k, n}).as<float>();
    if (wide)
        scale_rows(ctx, work, from, inverse, n, k);
    else {
        transpose(ctx, work, from, n, k);
        scale_rows(ctx, work, work, inverse, k, n);
    }
    for (int i = 0; i < kIterations; ++i) iterate(ctx, work, std::min(n, k), std::max(n, k));
    if (!wide) transpose(ctx, y.as<float>(), work, k, n);
}

void muon(Context& ctx, Tensor p, Tensor m, Tensor g, Tensor clip, const Muon& with) {
    check_tensor("muon", "p", p, Dtype::f32, {-1, -1});
    const int64_t n = p.dim(0), k = p.dim(1);
    for (const Tensor& other : {m, g}) check_tensor("muon", "m and g", other, Dtype::f32, {n, k});
    check_tensor("muon", "clip", clip, Dtype::f32, {2});
    require(with.products == Dtype::f32 || with.products == Dtype::bf16,
            "muon: expected products in f32 or bf16, found ", name_of(with.products));
    if (ctx.on_cuda()) return cuda_ops().muon(ctx, p, m, g, clip, with);
    if (!std::isfinite(clip.as<float>()[0])) return;
    const Arena::Scope scope(ctx.arena);
    Tensor update = ctx.arena.tensor(Dtype::f32, {n, k});
    const float factor = clip.as<float>()[1], rise = 1 - with.momentum;
    float *moment = m.as<float>(), *to = update.as<float>(), *parameters = p.as<float>();
    const float* gradient = g.as<float>();
    parallel_for(ctx.threads, n, [&](int64_t row) {
        for (int64_t i = row * k; i < (row + 1) * k; ++i) {
            const float now = gradient[i] * factor;
            moment[i] += rise * (now - moment[i]);
            to[i] = now + with.momentum * (moment[i] - now);
        }
    });
    orthogonalize(ctx, update, update);
    const float rate = with.rate * 0.2f * std::sqrt(static_cast<float>(std::max(n, k)));
    const float keep = 1 - with.rate * with.decay;
    parallel_for(ctx.threads, n, [&](int64_t row) {
        for (int64_t i = row * k; i < (row + 1) * k; ++i)
            parameters[i] = parameters[i] * keep - rate * to[i];
    });
}

}  // namespace hark
