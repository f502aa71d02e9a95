#include <algorithm>
#include <cmath>

#include "kernels/checks.h"
#include "kernels/cpu/cpu.h"
#include "kernels/gradients.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

constexpr int64_t kValuesPerTask = 1 << 14;  // values per task

int64_t pieces_of(int64_t n) { return (n + kValuesPerTask - 1) / kValuesPerTask; }

}  // namespace

void clip_by_norm(Context& ctx, Tensor clip, Tensor x, float max_norm) {
    check_tensor("clip_by_norm", "x", x, Dtype::f32, {-1});
    check_tensor("clip_by_norm", "clip", clip, Dtype::f32, {2});
    require(max_norm >= 0, "clip_by_norm: expected a largest norm of 0 or more, found ", max_norm);
    if (ctx.on_cuda()) return cuda_ops().clip_by_norm(ctx, clip, x, max_norm);
    const Arena::Scope scope(ctx.arena);
    const int64_t n = x.dim(0), pieces = pieces_of(n);
    float* sums = ctx.arena.tensor(Dtype::f32, {pieces}).as<float>();
    const float* values = x.as<float>();
    parallel_for(ctx.threads, pieces, [&](int64_t i) {
        const int64_t first = i * kValuesPerTask;
        sums[i] = static_cast<float>(
            cpu_kernels().sum_of_squares(values + first, std::min(kValuesPerTask, n - first)));
    });
    double sum = 0;
    for (int64_t i = 0; i < pieces; ++i) sum += sums[i];
    const double norm = std::sqrt(sum);
    float* to = clip.as<float>();
    to[0] = static_cast<float>(norm);
    // NaN stays NaN.
    to[1] = max_norm > 0 && !(norm + 1e-6 <= max_norm)
                ? static_cast<float>(max_norm / (norm + 1e-6))
                : 1.0f;
}

void adamw(Context& ctx, Tensor p, Tensor m, Tensor v, Tensor g, Tensor clip, int64_t decayed,
           const AdamW& with) {
    check_tensor("adamw", "p", p, Dtype::f32, {-1});
    const int64_t n = p.dim(0);
    for (const Tensor& other : {m, v, g})
        check_tensor("adamw", "m, v and g", other, Dtype::f32, {n});
    check_tensor("adamw", "clip", clip, Dtype::f32, {2});
    require(0 <= decayed && decayed <= n && with.step >= 1, "adamw: expected 0 to ", n,
            " parameters that decay and a step from 1 on, found ", decayed, " and step ",
            with.step);
    if (ctx.on_cuda()) return cuda_ops().adamw(ctx, p, m, v, g, clip, decayed, with);
    if (!std::isfinite(clip.as<float>()[0])) return;
    const double bias1 = 1 - std::pow(static_cast<double>(with.beta1), with.step);
    const double bias2 = 1 - std::pow(static_cast<double>(with.beta2), with.step);
    AdamWFactors by = {.gradient = clip.as<float>()[1],
                       .beta1 = with.beta1,
                       .beta2 = with.beta2,
                       .rate = static_cast<float>(with.rate / bias1),
                       .keep = 1,
                       .root = static_cast<float>(1 / std::sqrt(bias2)),
                       .eps = with.eps};
    AdamWFactors decaying = by;
    decaying.keep = 1 - with.rate * with.decay;
    const auto update = [&](int64_t begin, int64_t end, const AdamWFactors& factors) {
        parallel_for(ctx.threads, pieces_of(end - begin), [&](int64_t i) {
            const int64_t at = begin + i * kValuesPerTask;
            cpu_kernels().adamw(p.as<float>() + at, m.as<float>() + at, v.as<float>() + at,
                                g.as<float>() + at, std::min(kValuesPerTask, end - at), factors);
        });
    };
    update(0, decayed, decaying);
    update(decayed, n, by);
}

}  // namespace hark
