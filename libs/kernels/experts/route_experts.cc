#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/checks.h"
#include "kernels/ops_table.h"
#include "kernels/runtime/parallel.h"

namespace hark {
namespace {

constexpr int64_t kMostExperts = 1024;
constexpr float kLeast = -std::numeric_limits<float>::infinity();

// NaN is the least, so that every choice is an expert.
float rank_of(float score) { return std::isnan(score) ? kLeast : score; }

// The place of the largest of n scores that is not in taken[0, count).
int32_t largest(const float* scores, int64_t n, const int32_t* taken, int64_t count) {
    int32_t best = -1;
    for (int32_t e = 0; e < n; ++e) {
        if (std::find(taken, taken + count, e) != taken + count) continue;
        if (best < 0 || rank_of(scores[e]) > rank_of(scores[best])) best = e;
    }
    return best;
}

float sigmoid_of(float x) { return 1 / (1 + std::exp(-x)); }

// Scores of experts in groups that are not kept become `left_out`.
void keep_groups(float* scores, int64_t experts, const Routing& by, float left_out) {
    const int64_t size = experts / by.groups;
    float of_group[kMostExperts];
    for (int64_t g = 0; g < by.groups; ++g) {
        const float* group = scores + g * size;
        int32_t two[2] = {largest(group, size, nullptr, 0)};
        of_group[g] = group[two[0]];
        if (!by.sigmoid) continue;
        two[1] = largest(group, size, two, 1);
        of_group[g] += group[two[1]];
    }
    int32_t kept[kMostExperts];
    for (int64_t i = 0; i < by.kept_groups; ++i) kept[i] = largest(of_group, by.groups, kept, i);
    for (int32_t g = 0; g < by.groups; ++g)
        if (std::find(kept, kept + by.kept_groups, g) == kept + by.kept_groups)
            std::fill_n(scores + g * size, size, left_out);
}

// Softmax keeps the order of the logits, and the best group has the largest one.
void route_by_softmax(int32_t* chosen, float* weights, int64_t k, const float* logits,
                      int64_t experts, const Routing& by) {
    float scores[kMostExperts];
    std::copy_n(logits, experts, scores);
    if (by.groups > 1) keep_groups(scores, experts, by, kLeast);
    for (int64_t j = 0; j < k; ++j) chosen[j] = largest(scores, experts, chosen, j);
    const float top = logits[chosen[0]];
    float total = 0;
    for (int64_t j = 0; j < k; ++j) total += weights[j] = std::exp(logits[chosen[j]] - top);
    if (!by.normalized) {
        total = 0;
        for (int64_t e = 0; e < experts; ++e) total += std::exp(logits[e] - top);
    }
    for (int64_t j = 0; j < k; ++j) weights[j] = weights[j] / total * by.scale;
}

void route_by_sigmoid(int32_t* chosen, float* weights, int64_t k, const float* logits,
                      int64_t experts, const Routing& by) {
    constexpr float kNotZero = 1e-20f;
    float scores[kMostExperts];
    for (int64_t e = 0; e < experts; ++e)
        scores[e] = sigmoid_of(logits[e]) + (by.bias ? by.bias.as<float>()[e] : 0);
    if (by.groups > 1) keep_groups(scores, experts, by, 0);
    float total = kNotZero;
    for (int64_t j = 0; j < k; ++j) {
        chosen[j] = largest(scores, experts, chosen, j);
        total += weights[j] = sigmoid_of(logits[chosen[j]]);
    }
    for (int64_t j = 0; j < k; ++j) weights[j] *= by.normalized ? by.scale / total : by.scale;
}

void check_routing(const char* op, const Routing& by, int64_t k, int64_t experts) {
    if (by.bias) {
        require(by.sigmoid, op, ": expected a bias with sigmoid alone");
        check_tensor(op, "bias", by.bias, Dtype::f32, {experts});
    }
    require(by.groups > 0 && experts % by.groups == 0 && by.kept_groups > 0 &&
                by.kept_groups <= by.groups && k <= experts / by.groups * by.kept_groups,
            op, ": expected groups that divide ", experts, " experts and keep ", k,
            " or more, found ", by.kept_groups, " of ", by.groups, " kept");
    require(by.groups == 1 || !by.sigmoid || experts / by.groups > 1, op,
            ": expected groups of 2 experts or more, found ", by.groups, " of ", experts);
    require(by.scale > 0, op, ": expected a scale above 0, found ", by.scale);
}

}  // namespace

void route_experts(Context& ctx, Tensor chosen, Tensor weights, Tensor logits,
                   const Routing& routing) {
    constexpr const char* kOp = "route_experts";
    check_tensor(kOp, "logits", logits, Dtype::f32, {-1, -1});
    const int64_t rows = logits.dim(0), experts = logits.dim(1), k = chosen.dim(-1);
    require(k > 0 && k <= experts && experts <= kMostExperts, kOp, ": expected 1 to E of E up to ",
            kMostExperts, " experts, found ", k, " of ", experts);
    check_tensor(kOp, "chosen", chosen, Dtype::i32, {rows, k});
    check_tensor(kOp, "weights", weights, Dtype::f32, {rows, k});
    check_routing(kOp, routing, k, experts);
    if (ctx.on_cuda()) return cuda_ops().route_experts(ctx, chosen, weights, logits, routing);
    const auto route = routing.sigmoid ? route_by_sigmoid : route_by_softmax;
    parallel_for(logits.size() < 16384 ? 1 : ctx.threads, rows, [&](int64_t t) {
        route(chosen.as<int32_t>() + t * k, weights.as<float>() + t * k, k,
              logits.as<float>() + t * experts, experts, routing);
    });
}

}  // namespace hark
