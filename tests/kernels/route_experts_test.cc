// route_experts() against double, on every device.
#include "kernels/ops.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class RouteExperts : public testing::TestWithParam<DeviceCase> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
    }
    Context& ctx() { return device_.ctx(); }

    TestDevice device_{GetParam()};
};

struct Routed {
    std::vector<int32_t> chosen;
    std::vector<float> weights;
};

Routed route(TestDevice& device, const std::vector<float>& logits, int64_t experts, int64_t k,
             const Routing& routing) {
    const int64_t rows = std::ssize(logits) / experts;
    Tensor chosen = device.empty(Dtype::i32, {rows, k}),
           weights = device.empty(Dtype::f32, {rows, k});
    route_experts(device.ctx(), chosen, weights, device.up(logits, Dtype::f32, {rows, experts}),
                  routing);
    Tensor bits = chosen;
    bits.dtype = Dtype::f32;
    const std::vector<float> found = device.down(bits);
    Routed routed{std::vector<int32_t>(found.size()), device.down(weights)};
    std::memcpy(routed.chosen.data(), found.data(), 4 * found.size());
    return routed;
}

TEST_P(RouteExperts, AgreesWithTheScoresInDouble) {
    for (const auto& [experts, k] :
         {std::pair<int64_t, int64_t>{8, 2}, {128, 8}, {5, 5}, {1, 1}, {1000, 40}})
        for (const bool normalized : {true, false}) {
            SCOPED_TRACE(concat(k, " of ", experts, normalized ? ", normalised" : ""));
            const Arena::Scope scope(ctx().arena);
            const int64_t rows = 9;
            const std::vector<float> logits = random_values(rows * experts, 1, 3);
            const Routed routed = route(device_, logits, experts, k, {.normalized = normalized});
            std::vector<int32_t> chosen;
            std::vector<double> weights;
            for (int64_t t = 0; t < rows; ++t) {
                const float* row = logits.data() + t * experts;
                std::vector<int32_t> order(static_cast<size_t>(experts));
                for (int32_t e = 0; e < experts; ++e) order[static_cast<size_t>(e)] = e;
                std::stable_sort(order.begin(), order.end(),
                                 [&](int32_t a, int32_t b) { return row[a] > row[b]; });
                double total = 0;
                for (int64_t j = 0; j < (normalized ? k : experts); ++j)
                    total += std::exp(double{row[order[static_cast<size_t>(j)]]});
                for (int64_t j = 0; j < k; ++j) {
                    chosen.push_back(order[static_cast<size_t>(j)]);
                    weights.push_back(std::exp(double{row[chosen.back()]}) / total);
                }
            }
            EXPECT_EQ(routed.chosen, chosen);
            expect_near(routed.weights, weights, 1e-5, 0.01);
        }
}

// Of equal logits the lowest expert is first; whatever the logits are, each choice is an expert.
TEST_P(RouteExperts, TakesEveryLogit) {
    const Arena::Scope scope(ctx().arena);
    const float inf = INFINITY;
    std::vector<float> logits(3 * 40, 1.0f);
    logits[33] = logits[39] = 2;                                                  // row 0
    for (size_t e = 0; e < 40; ++e) logits[40 + e] = NAN, logits[80 + e] = -inf;  // rows 1 and 2
    const Routed routed = route(device_, logits, 40, 4, {});
    const std::vector<int32_t> expected = {33, 39, 0, 1, 0, 1, 2, 3, 0, 1, 2, 3};
    EXPECT_EQ(routed.chosen, expected);
    EXPECT_TRUE(std::isnan(routed.weights[4]));
}

// The places of the n largest scores, of equal ones the lowest first.
std::vector<int32_t> best(const std::vector<double>& scores, int64_t n) {
    std::vector<int32_t> order(scores.size());
    for (size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int32_t>(e);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
    });
    order.resize(static_cast<size_t>(n));
    return order;
}

// route_experts() of one row, by DeepSeek's papers.
Routed routed_by_groups(const std::vector<double>& logits, const std::vector<float>& bias,
                        int64_t k, const Routing& by) {
    double total = 0;
    for (const double logit : logits) total += std::exp(logit);
    std::vector<double> scores, choice, groups;
    for (size_t e = 0; e < logits.size(); ++e) {
        scores.push_back(by.sigmoid ? 1 / (1 + std::exp(-logits[e])) : std::exp(logits[e]) / total);
        choice.push_back(scores[e] + (bias.empty() ? 0 : bias[e]));
    }
    const int64_t size = std::ssize(logits) / by.groups;
    for (int64_t g = 0; g < by.groups; ++g) {
        std::vector<double> own(choice.begin() + g * size, choice.begin() + (g + 1) * size);
        std::sort(own.rbegin(), own.rend());
        groups.push_back(by.sigmoid && by.groups > 1 ? own[0] + own[1] : own[0]);
    }
    const std::vector<int32_t> kept = best(groups, by.kept_groups);
    for (int64_t e = 0; e < std::ssize(choice); ++e)
        if (std::find(kept.begin(), kept.end(), e / size) == kept.end())
            choice[static_cast<size_t>(e)] = 0;
    Routed routed{best(choice, k), {}};
    total = 0;
    for (const int32_t e : routed.chosen) total += scores[static_cast<size_t>(e)];
    for (const int32_t e : routed.chosen)
        routed.weights.push_back(static_cast<float>(scores[static_cast<size_t>(e)] * by.scale /
                                                    (by.normalized ? total : 1)));
    return routed;
}

TEST_P(RouteExperts, ByGroups) {
    const int64_t experts = 24, rows = 20, k = 4;
    const std::vector<float> logits = random_values(rows * experts, 1, 2),
                             bias = random_values(experts, 2, 0.2);
    for (const bool sigmoid : {false, true})
        for (const bool normalized : {false, true})
            for (const auto& [groups, kept] : {std::pair<int64_t, int64_t>{1, 1}, {6, 2}, {8, 3}}) {
                const Arena::Scope scope(ctx().arena);
                SCOPED_TRACE(concat(sigmoid, normalized, ": ", kept, " of ", groups));
                Routing by{.normalized = normalized,
                           .sigmoid = sigmoid,
                           .groups = groups,
                           .kept_groups = kept,
                           .scale = 2.5f};
                if (sigmoid) by.bias = device_.up(bias, Dtype::f32, {experts});
                const Routed routed = route(device_, logits, experts, k, by);
                for (int64_t t = 0; t < rows; ++t) {
                    const Routed expected = routed_by_groups(
                        {logits.begin() + t * experts, logits.begin() + (t + 1) * experts},
                        sigmoid ? bias : std::vector<float>(), k, by);
                    const auto of_row = [&](const auto& all) {
                        return std::vector(all.begin() + t * k, all.begin() + (t + 1) * k);
                    };
                    EXPECT_EQ(of_row(routed.chosen), expected.chosen);
                    expect_near(of_row(routed.weights), expected.weights, 1e-5, 0.01);
                }
            }
}

INSTANTIATE_TEST_SUITE_P(Devices, RouteExperts,
                         testing::Values(kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case,
                                         kCudaBf16Case),
                         name_of_case);

}  // namespace
}  // namespace hark::test
