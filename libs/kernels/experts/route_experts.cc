#include <cmath>
#include <limits>

#include "kernels/checks.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

// NaN is the least, so that every choice is an expert.
float rank_of(float logit) { return std::isnan(logit) ? kLeast : logit; }

// The largest logit of the experts that are not in chosen[0, count).
int32_t largest(const float* logits, int64_t experts, const int32_t* chosen, int64_t count) {
    int32_t best = -1;
    for (int32_t e = 0; e < experts; ++e) {
        if (std::find(chosen, chosen + count, e) != chosen + count) continue;
        if (best < 0 || rank_of(logits[e]) > rank_of(logits[best])) best = e;
    }
    return best;
}

void route_row(int32_t* chosen, float* weights, int64_t k, const float* logits, int64_t experts,
               bool normalized) {
    for (int64_t j = 0; j < k; ++j) chosen[j] = largest(logits, experts, chosen, j);
    const float top = logits[chosen[0]];
    float total = 0;
    for (int64_t j = 0; j < k; ++j) total += weights[j] = std::exp(logits[chosen[j]] - top);
    if (!normalized) {
        total = 0;
        for (int64_t e = 0; e < experts; ++e) total += std::exp(logits[e] - top);
    }
    for (int64_t j = 0; j < k; ++j) weights[j] /= total;
}

}  // namespace

void route_experts(Context& ctx, Tensor chosen, Tensor weights, Tensor logits, bool normalized) {
    constexpr const char* kOp = "route_experts";
    constexpr int64_t kMostExperts = 1024;
    check_tensor(kOp, "logits", logits, Dtype::f32, {-1, -1});
    const int64_t rows = logits.dim(0), experts = logits.dim(1), k = chosen.dim(-1);
    require(k > 0 && k <= experts && experts <= kMostExperts, kOp, ": expected 1 to E of E up to ",
            kMostExperts, " experts, found ", k, " of ", experts);
    check_tensor(kOp, "chosen", chosen, Dtype::i32, {rows, k});
    check_tensor(kOp, "weights", weights, Dtype::f32, {rows, k});
    if (ctx.on_cuda()) return cuda_ops().route_experts(ctx, chosen, weights, logits, normalized);
    parallel_for(logits.size() < 16384 ? 1 : ctx.threads, rows, [&](int64_t t) {
        route_row(chosen.as<int32_t>() + t * k, weights.as<float>() + t * k, k,
                  logits.as<float>() + t * experts, experts, normalized);
    });
}

}  // namespace hark
