// The optimizer next to its papers' own arithmetic in double.
#include <limits>

#include "support/gradients.h"

namespace hark::test {
namespace {

constexpr float kOptimizerNan = std::numeric_limits<float>::quiet_NaN();

class Optimizer : public GradientTest {};

// Five steps of x -> a x + (b A + c A^2) x, A = x x^T, from x over its norm; rows x columns of any
// shape, whose results are each other's transposes.
Values orthogonalized(Values x, size_t rows) {
    const size_t columns = x.size() / rows;
    const double norm = std::sqrt(dot(x, x));
    for (double& value : x) value /= norm;
    // (n, m) times (m, k)
    const auto times = [](const Values& a, const Values& b, size_t n, size_t m, size_t k) {
        Values c(n * k);
        for (size_t i = 0; i < n; ++i)
            for (size_t l = 0; l < m; ++l)
                for (size_t j = 0; j < k; ++j) c[i * k + j] += a[i * m + l] * b[l * k + j];
        return c;
    };
    for (int step = 0; step < 5; ++step) {
        Values turned(x.size());
        for (size_t i = 0; i < rows; ++i)
            for (size_t j = 0; j < columns; ++j) turned[j * rows + i] = x[i * columns + j];
        const Values a = times(x, turned, rows, columns, rows), a2 = times(a, a, rows, rows, rows);
        Values b(a.size());
        for (size_t i = 0; i < a.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * a2[i];
        const Values bx = times(b, x, rows, rows, columns);
        for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
    }
    return x;
}

// Three steps next to the paper's own arithmetic in double.
TEST_P(Optimizer, AdamWStepsAndClips) {
    constexpr int64_t kCount = 20003, kDecayed = 17001;
    const auto start = random_values(kCount, 1);
    Tensor p = up(start, {kCount}), m = filled({kCount}, 0), v = filled({kCount}, 0);
    Tensor clip = filled({2}, 0);
    Values ps = in_double(start), ms(kCount), vs(kCount);
    AdamW with = {.rate = 1e-2f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .decay = 0.1f};
    for (with.step = 1; with.step <= 3; ++with.step) {
        const auto g = random_values(kCount, 10 + static_cast<uint64_t>(with.step));
        const float most = with.step == 2 ? 0.0f : with.step == 3 ? 1e9f : 1.0f;
        const double norm = std::sqrt(dot(in_double(g), in_double(g)));
        const double factor = with.step == 1 ? 1 / (norm + 1e-6) : 1;
        clip_by_norm(ctx(), clip, up(g, {kCount}), most);
        const std::vector<float> clipped = down(clip);
        EXPECT_NEAR(clipped[0], norm, 1e-5 * norm);
        EXPECT_NEAR(clipped[1], factor, 1e-5 * factor);
        adamw(ctx(), p, m, v, up(g, {kCount}), clip, kDecayed, with);
        for (size_t i = 0; i < kCount; ++i) {
            const double gradient = g[i] * factor, rate = with.rate;
            ms[i] = 0.9 * ms[i] + 0.1 * gradient;
            vs[i] = 0.95 * vs[i] + 0.05 * gradient * gradient;
            if (i < kDecayed) ps[i] -= rate * 0.1 * ps[i];
            ps[i] -= rate * ms[i] / (1 - std::pow(0.9, with.step)) /
                     (std::sqrt(vs[i] / (1 - std::pow(0.95, with.step))) + 1e-8);
        }
    }
    expect_near(down(p), ps, GetParam().tolerance);
    expect_near(down(m), ms, GetParam().tolerance);
    expect_near(down(v), vs, GetParam().tolerance);
}

// The singular values of x become nearly 1: y y^T is near the identity, and y keeps x's directions.
TEST_P(Optimizer, OrthogonalMatricesAreNearXs) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{8, 8}, {5, 40}, {40, 5}, {33, 70}}) {
        SCOPED_TRACE(concat(n, " x ", k));
        const auto values = random_values(n * k, 3, 1e-3);
        Tensor y = filled({n, k}, 7);
        orthogonalize(ctx(), y, up(values, {n, k}));
        const std::vector<float> found = down(y);
        // The sum of singular values' squares, and the product with x: the sum of its own.
        double squares = 0, along = 0, size = 0;
        for (size_t i = 0; i < found.size(); ++i) {
            squares += std::pow(found[i], 2);
            along += static_cast<double>(found[i]) * values[i];
            size += std::pow(values[i], 2);
        }
        const auto rank = static_cast<double>(std::min(n, k));
        EXPECT_GT(squares, rank * 0.6 * 0.6);
        EXPECT_LT(squares, rank * 1.25 * 1.25);
        EXPECT_GT(along, 0.6 * std::sqrt(size * rank) * std::sqrt(1 / rank));
        Tensor in_place = up(values, {n, k});
        orthogonalize(ctx(), in_place, in_place);
        EXPECT_EQ(down(in_place), found);
        // The iteration in double.
        expect_near(found, orthogonalized(in_double(values), static_cast<size_t>(n)),
                    40 * GetParam().tolerance);
    }
}

TEST_P(Optimizer, MuonStepsAlongTheOrthogonalMomentum) {
    constexpr int64_t kRows = 6, kColumns = 9;
    const auto start = random_values(kRows * kColumns, 1), g = random_values(kRows * kColumns, 2);
    Tensor p = up(start, {kRows, kColumns}), m = filled({kRows, kColumns}, 0);
    const Tensor clip = up(std::vector<float>{3, 0.5}, {2});
    muon(ctx(), p, m, up(g, {kRows, kColumns}), clip,
         {.rate = 0.01f, .momentum = 0.9f, .decay = 0.1f});
    Values nesterov, expected, moment;
    for (const float value : g) {
        moment.push_back(0.1 * 0.5 * value);
        nesterov.push_back(0.5 * value + 0.9 * (moment.back() - 0.5 * value));
    }
    nesterov = orthogonalized(nesterov, kRows);
    for (size_t i = 0; i < g.size(); ++i)
        expected.push_back(start[i] * (1 - 0.01 * 0.1) - 0.01 * 0.2 * 3 * nesterov[i]);
    expect_near(down(m), moment, GetParam().tolerance);
    expect_near(down(p), expected, GetParam().tolerance);
}

TEST_P(Optimizer, ANormThatIsNoNumberIsSeen) {
    std::vector<float> g = random_values(40000, 1);
    g[33333] = kOptimizerNan;
    Tensor clip = filled({2}, 0);
    clip_by_norm(ctx(), clip, up(g, {40000}), 1);
    EXPECT_TRUE(std::isnan(down(clip)[0]) && std::isnan(down(clip)[1]));
}

// From values no bf16 holds to a neighbour, by chance: both occur, in parts that make the mean.
TEST_P(Optimizer, RoundsAtRandom) {
    constexpr int64_t kCount = 200003;
    for (const float value : {1.001f, -2.7182818f, 1e-20f, 3.0f, 65537.0f}) {
        SCOPED_TRACE(value);
        const Tensor to = filled({kCount}, 0, Dtype::bf16);
        stochastic_round(ctx(), to, filled({kCount}, value), 5);
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        const float near = to_float(bf16_t{static_cast<uint16_t>(bits >> 16)});
        const float far = to_float(bf16_t{static_cast<uint16_t>((bits >> 16) + 1)});
        int64_t ups = 0;
        for (const float rounded : down(to)) {
            ASSERT_TRUE(rounded == near || rounded == far) << rounded;
            ups += rounded == far;
        }
        // Within five deviations.
        const double chance = static_cast<double>(bits & 0xffff) / 65536;
        EXPECT_NEAR(static_cast<double>(ups), chance * kCount,
                    5 * std::sqrt(chance * (1 - chance) * kCount));
        EXPECT_EQ(ups > 0, chance > 0);
    }
}

TEST_P(Optimizer, RoundingDependsOnTheSeedAlone) {
    std::vector<float> x = random_values(40001, 1);
    const float infinity = std::numeric_limits<float>::infinity();
    x[7] = infinity, x[8] = -infinity, x[9] = kOptimizerNan;
    const uint32_t low = 0x7f800001;  // no number, of which nothing would be left above
    std::memcpy(&x[10], &low, sizeof low);
    const auto rounded = [&](const Tensor& from, uint64_t seed) {
        const Tensor to = filled({from.dim(0)}, 0, Dtype::bf16);
        stochastic_round(ctx(), to, from, seed);
        std::vector<float> found = down(to);
        EXPECT_TRUE(found[7] == infinity && found[8] == -infinity);
        EXPECT_TRUE(std::isnan(found[9]) && std::isnan(found[10]));
        found[9] = found[10] = 0;  // equal nothing
        return found;
    };
    const Tensor from = up(x, {std::ssize(x)});
    const std::vector<float> first = rounded(from, 3);
    EXPECT_EQ(rounded(from, 3), first);
    EXPECT_NE(rounded(from, 4), first);
    // Neither does it on where the values are, here at no whole 16 bytes.
    std::vector<float> shifted = x;
    shifted.insert(shifted.begin(), 1.0f);
    EXPECT_EQ(rounded(up(shifted, {std::ssize(shifted)}).slice(1, std::ssize(shifted)), 3), first);
}

TEST_P(Optimizer, WrongShapesAreErrors) {
    Tensor b = filled({5}, 0), clip = filled({2}, 1);
    EXPECT_THROW(clip_by_norm(ctx(), filled({3}, 0), b, 1), Error);
    EXPECT_THROW(clip_by_norm(ctx(), clip, b, -1), Error);
    EXPECT_THROW(stochastic_round(ctx(), filled({4}, 0, Dtype::bf16), b, 1), Error);
    EXPECT_THROW(stochastic_round(ctx(), filled({5}, 0), b, 1), Error);
    EXPECT_THROW(adamw(ctx(), b, b, b, b, clip, 6, {}), Error);
    EXPECT_THROW(adamw(ctx(), b, b, b, filled({4}, 0), clip, 5, {}), Error);
}

// Parameters and all that belongs to them are f32 everywhere.
INSTANTIATE_TEST_SUITE_P(Devices, Optimizer,
                         testing::Values(kCpuCase, kOneThreadCase, kCudaF32Case), name_of_case);

}  // namespace
}  // namespace hark::test
