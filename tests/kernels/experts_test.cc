// The operations of mixtures of experts against double.
#include "kernels/ops.h"
#include "nn/weights.h"
#include "support/blocks.h"
#include "support/ops.h"

namespace hark::test {
namespace {

using Kind = WeightPrecision;

class ExpertOps : public testing::TestWithParam<DeviceCase> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
    }
    Context& ctx() { return device_.ctx(); }
    Dtype dtype() const { return GetParam().activations; }
    std::vector<float> values(int64_t n, uint64_t seed, double deviation = 1) const {
        return TestDevice::rounded(random_values(n, seed, deviation), dtype());
    }

    TestDevice device_{GetParam()};
};

struct ExpertCase {
    int64_t rows, pairs_per_row, experts, n, k;
    bool bias;
};

constexpr ExpertCase kExpertCases[] = {
    {1, 4, 8, 96, 64, false}, {5, 2, 3, 33, 256, true},  {70, 3, 4, 48, 64, true},
    {12, 1, 5, 7, 512, true}, {2, 2, 4, 130, 32, false},
};

// A few experts get most of the rows, some get none.
std::vector<int32_t> choices(const ExpertCase& c) {
    std::vector<int32_t> chosen;
    for (int64_t p = 0; p < c.rows * c.pairs_per_row; ++p)
        chosen.push_back(static_cast<int32_t>(p % 5 < 3 ? p * p % c.experts : c.experts - 1));
    return chosen;
}

std::vector<double> experts_expected(const ExpertCase& c, const std::vector<float>& x,
                                     const std::vector<float>& w, const std::vector<float>& bias) {
    std::vector<double> y;
    const std::vector<int32_t> chosen = choices(c);
    for (size_t p = 0; p < chosen.size(); ++p)
        for (int64_t i = 0; i < c.n; ++i) {
            const int64_t row = chosen[p] * c.n + i;
            double sum = c.bias ? bias[static_cast<size_t>(row)] : 0;
            const float* from = x.data() + static_cast<int64_t>(p) / c.pairs_per_row * c.k;
            for (int64_t j = 0; j < c.k; ++j)
                sum += double{from[j]} * w[static_cast<size_t>(row * c.k + j)];
            y.push_back(sum);
        }
    return y;
}

// A matrix per expert, from rows of one that stacks them.
ExpertMatrices matrices_of(WeightStore& weights, const Tensor& stacked, int64_t experts) {
    std::vector<Tensor> parts;
    const int64_t n = stacked.dim(0) / experts;
    for (int64_t e = 0; e < experts; ++e) parts.push_back(stacked.slice(e * n, (e + 1) * n));
    return {weights.matrices(parts), {}};
}

TEST_P(ExpertOps, ExpertLinear) {
    for (const ExpertCase& c : kExpertCases)
        for (const Kind kind : {Kind::f32, Kind::f16, Kind::bf16, Kind::int8, Kind::fp8}) {
            SCOPED_TRACE(concat(c.rows, " rows, ", c.n, " x ", c.k, ", kind ", int(kind)));
            const Arena::Scope scope(ctx().arena);
            WeightStore weights(kind, ctx().arena.source());
            std::vector<float> w = random_values(c.experts * c.n * c.k, 1, 1 / std::sqrt(c.k));
            const std::vector<float> x = values(c.rows * c.k, 2);
            const std::vector<float> bias = random_values(c.experts * c.n, 3);
            ExpertMatrices experts =
                matrices_of(weights, TestDevice::host(w, {c.experts * c.n, c.k}), c.experts);
            if (c.bias) experts.bias = device_.up(bias, Dtype::f32, {c.experts, c.n});
            Tensor y = device_.empty(dtype(), {c.rows * c.pairs_per_row, c.n});
            expert_linear(ctx(), y, device_.up(x, dtype(), {c.rows, c.k}), experts,
                          device_.up(choices(c)));
            const double tolerance = kind == Kind::fp8    ? 0.15
                                     : kind == Kind::int8 ? 0.03
                                     : kind == Kind::f32  ? 0
                                                          : 0.01;
            expect_near(device_.down(y), experts_expected(c, x, w, bias),
                        GetParam().tolerance + tolerance);
        }
}

TEST_P(ExpertOps, ExpertLinearFromBlocks) {
    // One block of a row, and an odd number of them: a share of a model's rows.
    for (const ExpertCase& c : {ExpertCase{20, 2, 4, 24, 256, true},
                                {100, 2, 4, 24, 256, true},
                                {1, 4, 4, 24, 512, true},
                                {1, 4, 4, 24, 1440, true},
                                {20, 2, 4, 24, 32, true},
                                {20, 2, 4, 24, 1440, true}})
        for (const Dtype type : kQuantizedDtypes) {
            if (c.k % block_size(type).values != 0) continue;
            SCOPED_TRACE(concat(name_of(type), ", ", c.rows, " rows of ", c.k));
            ctx().batch_invariant = c.rows == 20;  // else a GPU converts the weights of 100 rows
            const Arena::Scope scope(ctx().arena);
            WeightStore weights(Kind::as_stored, ctx().arena.source());
            RandomBlocks blocks(type, c.experts * c.n, c.k, 7);
            const std::vector<float> x = values(c.rows * c.k, 2);
            const std::vector<float> bias = random_values(c.experts * c.n, 3);
            ExpertMatrices experts = matrices_of(weights, blocks.tensor(), c.experts);
            experts.bias = device_.up(bias, Dtype::f32, {c.experts, c.n});
            Tensor y = device_.empty(dtype(), {c.rows * c.pairs_per_row, c.n});
            expert_linear(ctx(), y, device_.up(x, dtype(), {c.rows, c.k}), experts,
                          device_.up(choices(c)));
            const std::vector<double> expected = experts_expected(c, x, blocks.values(), bias);
            double largest = 1;
            for (const double value : expected) largest = std::max(largest, std::abs(value));
            const double converted = dtype() != Dtype::f32 && c.rows == 100 ? 1e-3 : 0;
            expect_near(device_.down(y), expected, GetParam().tolerance + 5e-5 + converted,
                        largest);
        }
}

// More values than are converted at a time.
TEST_P(ExpertOps, ManyValuesOfExperts) {
    if (!ctx().on_cuda() || dtype() == Dtype::f32) GTEST_SKIP() << "nothing is converted";
    const ExpertCase c = {130, 2, 5, 2048, 8192, false};
    const Arena::Scope scope(ctx().arena);
    WeightStore weights(Kind::as_stored, ctx().arena.source());
    RandomBlocks blocks(Dtype::mxfp4, c.experts * c.n, c.k, 7);
    const ExpertMatrices experts = matrices_of(weights, blocks.tensor(), c.experts);
    const Tensor x = device_.up(values(c.rows * c.k, 2, 0.01), dtype(), {c.rows, c.k});
    std::vector<float> found[2];
    for (const bool invariant : {false, true}) {
        ctx().batch_invariant = invariant;
        Tensor y = device_.empty(dtype(), {c.rows * c.pairs_per_row, c.n});
        expert_linear(ctx(), y, x, experts, device_.up(choices(c)));
        found[invariant] = device_.down(y);
    }
    EXPECT_NE(found[0], found[1]);  // sums in another order
    double largest = 1;
    for (const float value : found[1]) largest = std::max(largest, std::abs(double{value}));
    expect_near(found[0], found[1], GetParam().tolerance, largest);
}

// One row of more groups of outputs than a GPU's blocks have at a time, in slices of K that are not
// as long as each other.
TEST_P(ExpertOps, ManyOutputsOfOneRow) {
    if (!ctx().on_cuda() || dtype() == Dtype::f32) GTEST_SKIP() << "one kernel for all outputs";
    const ExpertCase c = {1, 2, 3, 24000, 1472, false};
    const Arena::Scope scope(ctx().arena);
    WeightStore weights(Kind::as_stored, ctx().arena.source());
    RandomBlocks blocks(Dtype::mxfp4, c.experts * c.n, c.k, 7);
    const ExpertMatrices experts = matrices_of(weights, blocks.tensor(), c.experts);
    std::vector<float> x = values(c.k, 2);
    x[40] *= 1000;  // the others of its block have few bits left
    std::vector<float> found[2];
    for (const bool invariant : {false, true}) {
        ctx().batch_invariant = invariant;
        Tensor y = device_.empty(dtype(), {c.pairs_per_row, c.n});
        expert_linear(ctx(), y, device_.up(x, dtype(), {1, c.k}), experts, device_.up(choices(c)));
        found[invariant] = device_.down(y);
    }
    double largest = 1;
    for (const float value : found[1]) largest = std::max(largest, std::abs(double{value}));
    expect_near(found[0], found[1], GetParam().tolerance, largest);
    x[c.k - 1] = INFINITY;
    Tensor y = device_.empty(dtype(), {c.pairs_per_row, c.n});
    ctx().batch_invariant = false;
    expert_linear(ctx(), y, device_.up(x, dtype(), {1, c.k}), experts, device_.up(choices(c)));
    for (const float value : device_.down(y)) ASSERT_FALSE(std::isfinite(value));
}

// The bits of separate products and their activation; of experts that are not there, NaN.
TEST_P(ExpertOps, GatedExperts) {
    const int64_t experts = 6, k = 512, per_row = 3;
    std::vector<Dtype> types(std::begin(kQuantizedDtypes), std::end(kQuantizedDtypes));
    types.push_back(Dtype::f32);
    for (const Dtype type : types)
        for (const int64_t rows : {1, 5, 70, 100}) {
            SCOPED_TRACE(concat(name_of(type), ", ", rows, " rows"));
            const int64_t n = rows == 1 ? 44 : 40;  // no whole number of groups of 8
            ctx().batch_invariant = rows == 5 || rows == 70;
            const Arena::Scope scope(ctx().arena);
            WeightStore weights(Kind::as_stored, ctx().arena.source());
            const auto matrices = [&](uint64_t seed) {
                std::vector<float> w = random_values(experts * n * k, seed, 1 / std::sqrt(k));
                RandomBlocks blocks(is_quantized(type) ? type : Dtype::q8_0, experts * n, k, seed);
                ExpertMatrices all = matrices_of(
                    weights,
                    is_quantized(type) ? blocks.tensor() : TestDevice::host(w, {experts * n, k}),
                    experts);
                all.bias = device_.up(random_values(experts * n, seed), Dtype::f32, {experts, n});
                return all;
            };
            const ExpertMatrices gate = matrices(1), up = matrices(2);
            std::vector<int32_t> chosen;
            for (int32_t p = 0; p < rows * per_row; ++p)
                chosen.push_back((p * p + p / 7) % static_cast<int32_t>(experts));
            const size_t missing = rows > 1 ? 4 : 1;
            if (ctx().on_cuda()) chosen[missing] = experts;
            if (ctx().on_cuda() && rows > 1) chosen[9] = -1;
            const Tensor by = device_.up(chosen);
            const Tensor x = device_.up(values(rows * k, 3, 0.1), dtype(), {rows, k});
            const auto empty = [&] { return device_.empty(dtype(), {rows * per_row, n}); };
            Tensor y = empty(), gates = empty(), ups = empty(), expected = empty();
            expert_linear(ctx(), gates, x, gate, by);
            expert_linear(ctx(), ups, x, up, by);
            const auto bits = [&](const Tensor& tensor) {
                std::vector<float> found = device_.down(tensor);
                for (float& value : found)
                    if (std::isnan(value)) value = -12345;
                return found;
            };
            gated_experts(ctx(), y, x, gate, up, by, {.activation = Activation::silu});
            gated_activation(ctx(), expected, {gates}, {ups}, Activation::silu);
            EXPECT_EQ(bits(y), bits(expected));
            gated_experts(ctx(), y, x, gate, up, by, {.slope = 1.7f, .limit = 2});
            clamped_swiglu(ctx(), expected, {gates}, {ups}, 1.7f, 2);
            EXPECT_EQ(bits(y), bits(expected));
            if (ctx().on_cuda()) {
                EXPECT_TRUE(std::isnan(device_.down(y)[missing * n]));
            }
        }
}

// Up to 16 rows on the CPU, any number on a GPU.
TEST_P(ExpertOps, RowsAreTheSameBitsWhateverIsBesideThem) {
    const ExpertCase c = {16, 2, 4, 40, 128, false};
    for (const Kind kind : {Kind::f32, Kind::f16, Kind::int8, Kind::fp8, Kind::as_stored}) {
        const Arena::Scope scope(ctx().arena);
        WeightStore weights(kind, ctx().arena.source());
        std::vector<float> w = random_values(c.experts * c.n * c.k, 1);
        const std::vector<float> x = values(c.rows * c.k, 2);
        RandomBlocks blocks(Dtype::mxfp4, c.experts * c.n, c.k, 7);
        const ExpertMatrices experts = matrices_of(
            weights,
            kind == Kind::as_stored ? blocks.tensor() : TestDevice::host(w, {c.experts * c.n, c.k}),
            c.experts);
        const std::vector<int32_t> chosen = choices(c);
        const auto run = [&](int64_t first, int64_t rows) {
            Tensor y = device_.empty(dtype(), {rows * c.pairs_per_row, c.n});
            const std::vector<float> some(x.begin() + first * c.k,
                                          x.begin() + (first + rows) * c.k);
            const std::vector<int32_t> by(chosen.begin() + first * c.pairs_per_row,
                                          chosen.begin() + (first + rows) * c.pairs_per_row);
            expert_linear(ctx(), y, device_.up(some, dtype(), {rows, c.k}), experts,
                          device_.up(by));
            return device_.down(y);
        };
        const std::vector<float> all = run(0, c.rows);
        for (int64_t t = 0; t < c.rows; ++t) {
            const std::vector<float> alone = run(t, 1);
            const auto from = all.begin() + t * c.pairs_per_row * c.n;
            EXPECT_EQ(alone, std::vector<float>(from, from + std::ssize(alone))) << t;
        }
    }
}

TEST_P(ExpertOps, AddExperts) {
    for (const auto& [rows, k, channels] :
         {std::array<int64_t, 3>{1, 8, 64}, {7, 2, 33}, {40, 3, 512}}) {
        const Arena::Scope scope(ctx().arena);
        const std::vector<float> x = values(rows * channels, 1), y = values(rows * k * channels, 2);
        const std::vector<float> weights = random_values(rows * k, 3);
        Tensor sum = device_.up(x, dtype(), {rows, channels});
        add_experts(ctx(), sum, device_.up(y, dtype(), {rows * k, channels}),
                    device_.up(weights, Dtype::f32, {rows, k}));
        std::vector<double> expected(x.begin(), x.end());
        for (int64_t p = 0; p < rows * k; ++p)
            for (int64_t c = 0; c < channels; ++c)
                expected[size_t(p / k * channels + c)] +=
                    double{weights[size_t(p)]} * y[size_t(p * channels + c)];
        expect_near(device_.down(sum), expected, GetParam().tolerance);
    }
}

TEST_P(ExpertOps, ClampedSwiglu) {
    const int64_t rows = 5, n = 37, width = 2 * n + 3;
    const Arena::Scope scope(ctx().arena);
    std::vector<float> x = values(rows * width, 1, 6);
    Tensor from = device_.up(x, dtype(), {rows, width}), y = device_.empty(dtype(), {rows, n});
    clamped_swiglu(ctx(), y, {from, 1}, {from, n + 2}, 1.702f, 7);
    std::vector<double> expected;
    for (int64_t t = 0; t < rows; ++t)
        for (int64_t c = 0; c < n; ++c) {
            const double g = std::min(double{x[size_t(t * width + 1 + c)]}, 7.0);
            const double u = std::clamp(double{x[size_t(t * width + n + 2 + c)]}, -7.0, 7.0);
            expected.push_back((u + 1) * g / (1 + std::exp(-1.702 * g)));
        }
    expect_near(device_.down(y), expected, GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(Devices, ExpertOps,
                         testing::Values(kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case,
                                         kCudaBf16Case),
                         name_of_case);

TEST(ExpertOpsErrors, ArgumentsThatDoNotFit) {
    TestDevice device(kCpuCase);
    Context& ctx = device.ctx();
    Tensor two = device.up(random_values(4, 1), Dtype::f32, {2, 2});
    Tensor four = device.up(random_values(8, 1), Dtype::f32, {4, 2});
    const ExpertMatrices experts{{{two}, {two}}, {}};
    EXPECT_THROW(expert_linear(ctx, four, two, experts, device.up({0, 1, 2, 0})), Error);
    EXPECT_THROW(expert_linear(ctx, four, two, experts, device.up({0, 1, -1, 0})), Error);
    EXPECT_THROW(expert_linear(ctx, four, two, experts, device.up({0, 1, 0})), Error);
    EXPECT_THROW(expert_linear(ctx, two, four, experts, device.up({0, 1})), Error);
    EXPECT_THROW(expert_linear(ctx, four, two, {{{two}, {four}}, {}}, device.up({0, 1, 1, 0})),
                 Error);
    EXPECT_THROW(expert_linear(ctx, four, two, {}, device.up({0, 1, 1, 0})), Error);
    EXPECT_THROW(add_experts(ctx, two, two, two), Error);
    EXPECT_THROW(clamped_swiglu(ctx, two, {two}, {four}, 1, 7), Error);
    EXPECT_THROW(clamped_swiglu(ctx, two, {two}, {two}, 1, 0), Error);
    Tensor ids = device.up({0, 0, 0, 0, 0, 0}).reshaped({2, 3});
    EXPECT_THROW(route_experts(ctx, ids, two, two, {}), Error);
    // One of four experts per row.
    Tensor logits = two.reshaped({1, 4}), one = device.up(std::vector<int32_t>{0}).reshaped({1, 1}),
           weight = device.up(std::vector<float>{0}, Dtype::f32, {1, 1});
    EXPECT_NO_THROW(route_experts(ctx, one, weight, logits, {.sigmoid = true, .groups = 2}));
    for (const Routing& by : {Routing{.groups = 3},
                              {.groups = 2, .kept_groups = 3},
                              {.sigmoid = true, .groups = 4},
                              {.scale = 0},
                              {.bias = logits.reshaped({4})},
                              {.sigmoid = true, .bias = two}})
        EXPECT_THROW(route_experts(ctx, one, weight, logits, by), Error);
}

}  // namespace
}  // namespace hark::test
