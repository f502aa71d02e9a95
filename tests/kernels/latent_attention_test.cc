// The operations of latent attention against double.
#include "kernels/batch_layout.h"
#include "kernels/ops.h"
#include "nn/weights.h"
#include "support/error_of.h"
#include "support/ops.h"

namespace hark::test {
namespace {

using LatentKind = WeightPrecision;

class LatentOps : public testing::TestWithParam<DeviceCase> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
    }
    Context& ctx() { return device_.ctx(); }
    Dtype dtype() const { return GetParam().activations; }
    std::vector<float> values(int64_t n, uint64_t seed) const {
        return TestDevice::rounded(random_values(n, seed), dtype());
    }
    TestDevice device_{GetParam()};
};

struct HeadCase {
    int64_t rows, heads, n, k;
    int64_t x_head, x_first, y_head, y_first;  // channels of a head's part, the first that is used
};

constexpr HeadCase kHeadCases[] = {
    {1, 4, 24, 16, 24, 0, 32, 0},
    {1, 3, 20, 32, 40, 8, 20, 0},
    {5, 2, 33, 64, 64, 0, 40, 7},
    {40, 4, 48, 24, 36, 4, 48, 0},
};

std::vector<double> expected_of(const HeadCase& c, const std::vector<float>& x,
                                const std::vector<float>& w, std::vector<double> y) {
    for (int64_t t = 0; t < c.rows; ++t)
        for (int64_t h = 0; h < c.heads; ++h)
            for (int64_t i = 0; i < c.n; ++i) {
                const float* from = x.data() + (t * c.heads + h) * c.x_head + c.x_first;
                double sum = 0;
                for (int64_t j = 0; j < c.k; ++j)
                    sum += double{from[j]} * w[size_t((h * c.n + i) * c.k + j)];
                y[size_t((t * c.heads + h) * c.y_head + c.y_first + i)] = sum;
            }
    return y;
}

// Channels of y that are not of the product stay.
TEST_P(LatentOps, HeadLinear) {
    for (const HeadCase& c : kHeadCases)
        for (const LatentKind kind : {LatentKind::f32, LatentKind::f16, LatentKind::bf16,
                                      LatentKind::int8, LatentKind::fp8}) {
            SCOPED_TRACE(concat(c.rows, " rows, ", c.n, " x ", c.k, ", kind ", int(kind)));
            const Arena::Scope scope(ctx().arena);
            WeightStore weights(kind, ctx().arena.source());
            std::vector<float> w = random_values(c.heads * c.n * c.k, 1, 1 / std::sqrt(c.k));
            const std::vector<float> x = values(c.rows * c.heads * c.x_head, 2);
            const std::vector<float> old = values(c.rows * c.heads * c.y_head, 3);
            const Tensor all = TestDevice::host(w, {c.heads * c.n, c.k});
            std::vector<Tensor> parts;
            for (int64_t h = 0; h < c.heads; ++h)
                parts.push_back(all.slice(h * c.n, (h + 1) * c.n));
            Tensor y = device_.up(old, dtype(), {c.rows, c.heads * c.y_head});
            head_linear(ctx(), {y, c.y_first},
                        {device_.up(x, dtype(), {c.rows, c.heads * c.x_head}), c.x_first},
                        weights.matrices(parts));
            const double tolerance = kind == LatentKind::fp8    ? 0.15
                                     : kind == LatentKind::int8 ? 0.03
                                     : kind == LatentKind::f32  ? 0
                                                                : 0.02;  // x is rounded too
            expect_near(device_.down(y), expected_of(c, x, w, {old.begin(), old.end()}),
                        GetParam().tolerance + tolerance);
        }
}

// Channels 2 i and 2 i + 1 of n, turned.
std::vector<double> turned_pairs(const double* from, const std::vector<float>& frequencies,
                                 int32_t position, double scale) {
    std::vector<double> out;
    for (size_t i = 0; i < frequencies.size(); ++i) {
        const double angle = position * frequencies[i], c = std::cos(angle), s = std::sin(angle);
        out.push_back(scale * (from[2 * i] * c - from[2 * i + 1] * s));
        out.push_back(scale * (from[2 * i + 1] * c + from[2 * i] * s));
    }
    return out;
}

TEST_P(LatentOps, LatentAppend) {
    constexpr int64_t kHeads = 3, kLatent = 20, kPlain = 10, kRows = 4, kCapacity = 4;
    const std::vector<float> frequencies = {1, 0.3f, 0.01f};
    const int64_t rotary = 2 * std::ssize(frequencies), width = kLatent + rotary,
                  head = kPlain + rotary;
    // Sequence 0 has the blocks 2 and 0, its rows cross the border; sequence 1 has block 1.
    const std::vector<int32_t> starts = {0, 3, 4}, lengths = {6, 1}, positions = {3, 4, 5, 0};
    std::vector<int32_t> blocks = {2, 0, 1, -1};
    const std::vector<int32_t> place = {2 * 4 + 3, 0, 1, 4};  // of each row
    const std::vector<float> q = values(kRows * kHeads * head, 1),
                             latent = values(kRows * width, 2), weight = random_values(kLatent, 3),
                             old = values(kRows * kHeads * width, 4),
                             none(size_t(3 * kCapacity * width), 0.5f);
    Tensor cache = device_.up(none, Dtype::f32, {3, 1, kCapacity, width});
    Tensor absorbed = device_.up(old, dtype(), {kRows, kHeads * width});
    latent_append(
        ctx(), cache, absorbed, device_.up(q, dtype(), {kRows, kHeads * head}),
        device_.up(latent, dtype(), {kRows, width}), kHeads, device_.up(positions),
        {device_.up(frequencies, Dtype::f32, {3}), 1.25f},
        {device_.up(weight, Dtype::f32, {kLatent}), {}, 1e-2f, NormKind::rms},
        {device_.up(starts), device_.up(blocks).reshaped({2, 2}), device_.up(lengths), 3, 6});
    std::vector<double> cached(none.begin(), none.end()), queries(old.begin(), old.end());
    for (int64_t t = 0; t < kRows; ++t) {
        const std::vector<double> row(latent.begin() + t * width, latent.begin() + (t + 1) * width);
        const int32_t position = positions[size_t(t)];
        double square = 0;
        for (int64_t i = 0; i < kLatent; ++i) square += row[size_t(i)] * row[size_t(i)];
        double* to = cached.data() + place[size_t(t)] * width;
        for (int64_t i = 0; i < kLatent; ++i)
            to[i] = row[size_t(i)] * weight[size_t(i)] / std::sqrt(square / kLatent + 1e-2f);
        const auto key = turned_pairs(row.data() + kLatent, frequencies, position, 1.25);
        std::copy(key.begin(), key.end(), to + kLatent);
        for (int64_t h = 0; h < kHeads; ++h) {
            const std::vector<double> of(q.begin() + (t * kHeads + h) * head,
                                         q.begin() + (t * kHeads + h + 1) * head);
            const auto query = turned_pairs(of.data() + kPlain, frequencies, position, 1.25);
            std::copy(query.begin(), query.end(),
                      queries.begin() + (t * kHeads + h) * width + kLatent);
        }
    }
    expect_near(device_.down(cache), cached, GetParam().tolerance);
    expect_near(device_.down(absorbed), queries, GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(Devices, LatentOps,
                         testing::Values(kCpuCase, kOneThreadCase, kCudaF32Case, kCudaF16Case,
                                         kCudaBf16Case),
                         name_of_case);

TEST(LatentOpsErrors, ArgumentsThatDoNotFit) {
    TestDevice device(kCpuCase);
    Context& ctx = device.ctx();
    Tensor small = device.up(random_values(8, 1), Dtype::f32, {2, 4});
    Tensor x = device.up(random_values(16, 1), Dtype::f32, {2, 8});
    const std::vector<Matrix> two = {{small}, {small}};  // (2, 4) each
    EXPECT_NO_THROW(head_linear(ctx, {small}, {x}, two));
    EXPECT_THROW(head_linear(ctx, {small, 1}, {x}, two), Error);
    EXPECT_THROW(head_linear(ctx, {small}, {x, 1}, two), Error);
    EXPECT_THROW(head_linear(ctx, {small}, {x}, {}), Error);
    EXPECT_THROW(head_linear(ctx, {small}, {x}, {{small}, {x}}), Error);
    EXPECT_THROW(head_linear(ctx, {small}, {x}, {{small}, {small}, {small}}), Error);
    // One head of 2 + 2 channels over a latent row of 6 + 2.
    Tensor cache = device.up(random_values(8 * 4, 1), Dtype::f32, {1, 1, 4, 8});
    Tensor weight = device.up(random_values(6, 1), Dtype::f32, {6});
    const Rope rope{device.up(random_values(1, 1), Dtype::f32, {1})};
    HostBatchLayout rows;
    rows.add(0, 2, 2);
    const auto append = [&](Tensor absorbed, Tensor q, Tensor latent, const Norm& norm) {
        Tensor positions = device.up(std::vector<int32_t>{0, 1});
        latent_append(ctx, cache, absorbed, q, latent, 1, positions, rope, norm, rows.view());
    };
    const Norm norm{weight, {}, 1e-6f, NormKind::rms};
    EXPECT_NO_THROW(append(x, small, x, norm));
    EXPECT_THROW(append(small, small, x, norm), Error);
    EXPECT_THROW(append(x, small, small, norm), Error);
    EXPECT_THROW(append(x, small, x, {weight}), Error);
    EXPECT_THROW(append(x, small, x, {weight.slice(0, 5), {}, 1e-6f, NormKind::rms}), Error);
}

}  // namespace
}  // namespace hark::test
