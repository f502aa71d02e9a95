// The inner loops of every kind of processor that this one can run.
#include "kernels/cpu/cpu.h"

#include <algorithm>
#include <limits>

#include "kernels/quant/block_types.h"
#include "support/blocks.h"
#include "support/kernels_golden.h"
#include "support/ops.h"

namespace hark::test {
namespace {

class Loops : public testing::TestWithParam<const CpuKernels*> {
  protected:
    const CpuKernels& cpu = *GetParam();
};

TEST_P(Loops, GeluIsExactWithinAMillionth) {
    std::vector<float> x;
    for (int i = -140000; i <= 140000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);
    std::vector<float> y(x.size()), tanh(x.size());
    cpu.epilogue(y.data(), x.data(), nullptr, nullptr, std::ssize(x), Activation::gelu);
    cpu.epilogue(tanh.data(), x.data(), nullptr, nullptr, std::ssize(x), Activation::gelu_tanh);
    double worst = 0, worst_tanh = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        const double v = x[i];
        worst = std::max(worst, std::abs(y[i] - 0.5 * v * std::erfc(-v / std::sqrt(2.0))));
        const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
        worst_tanh = std::max(worst_tanh, std::abs(tanh[i] - v / (1 + std::exp(-2 * u))));
    }
    EXPECT_LE(worst, 1e-6);
    EXPECT_LE(worst_tanh, 1e-6);
}

TEST_P(Loops, GeluAgreesWithPyTorch) {
    const nlohmann::json& golden = kernels_golden()["gelu"];
    const std::vector<float> x = golden["x"];
    std::vector<float> y(x.size());
    cpu.epilogue(y.data(), x.data(), nullptr, nullptr, std::ssize(x), Activation::gelu);
    expect_near(y, golden["gelu"].get<std::vector<double>>(), 1e-6);
    cpu.epilogue(y.data(), x.data(), nullptr, nullptr, std::ssize(x), Activation::gelu_tanh);
    expect_near(y, golden["gelu_tanh"].get<std::vector<double>>(), 1e-6);
}

TEST_P(Loops, ExpIsWithinThreeUnitsInTheLastPlace) {
    std::vector<float> x = {0};
    for (int i = 0; i < 87000; ++i) x.push_back(static_cast<float>(i) * -1e-3f);
    x.insert(x.end(), {-88.0f, -1000.0f, -std::numeric_limits<float>::infinity()});
    std::vector<float> e = x;
    cpu.softmax(e.data(), std::ssize(e), 1.0f);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        const double expected = std::exp(static_cast<double>(x[i]));
        if (expected < 1.3e-38)
            EXPECT_LE(e[i], 1.3e-38) << x[i];
        else
            worst = std::max(worst, std::abs(e[i] / expected - 1));
    }
    EXPECT_LE(worst, 3 * 1.1920929e-7);
}

TEST_P(Loops, SoftmaxOfAnyLength) {
    for (int64_t n = 1; n < 70; ++n) {
        std::vector<float> x = random_values(n, n, 30);
        std::vector<double> expected;
        const double top = *std::max_element(x.begin(), x.end());
        double total = 0;
        for (const float value : x) total += expected.emplace_back(std::exp(0.25 * (value - top)));
        const float sum = cpu.softmax(x.data(), n, 0.25f);
        expect_near(x, expected, 1e-6);
        EXPECT_NEAR(sum, total, 1e-5 * total);
    }
}

TEST_P(Loops, WidensEveryF16AndBf16) {
    std::vector<uint16_t> bits(65536);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(bits.size());
    std::vector<uint16_t> back(bits.size());
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
        cpu.widen(wide.data(), bits.data(), dtype, std::ssize(bits));
        cpu.narrow(back.data(), dtype, wide.data(), std::ssize(wide));
        for (size_t i = 0; i < bits.size(); ++i) {
            const float expected =
                dtype == Dtype::f16 ? to_float(f16_t{bits[i]}) : to_float(bf16_t{bits[i]});
            if (std::isnan(expected)) {
                ASSERT_TRUE(std::isnan(wide[i])) << i;
                continue;
            }
            ASSERT_EQ(wide[i], expected) << i;
            ASSERT_EQ(back[i], bits[i]) << i;
        }
    }
}

TEST_P(Loops, NarrowsToNearestEven) {
    std::vector<float> x = random_values(1003, 8, 100);
    // Halfway between two bf16, between two f16, and what overflows.
    x.insert(x.end(), {1.00390625f, 1.01171875f, 1.00048828125f, 1.00146484375f, 70000.0f,
                       std::numeric_limits<float>::infinity(), 3.4e38f, 1e-7f, 1e-40f});
    for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
        std::vector<uint16_t> narrow(x.size());
        cpu.narrow(narrow.data(), dtype, x.data(), std::ssize(x));
        for (size_t i = 0; i < x.size(); ++i)
            EXPECT_EQ(narrow[i], dtype == Dtype::f16 ? to_f16(x[i]).bits : to_bf16(x[i]).bits)
                << name_of(dtype) << " of " << x[i];
        const float nan = NAN;
        uint16_t bits = 0;
        float wide = 0;
        cpu.narrow(&bits, dtype, &nan, 1);
        cpu.widen(&wide, &bits, dtype, 1);
        EXPECT_TRUE(std::isnan(wide));
    }
}

TEST_P(Loops, QuantizesByTheLargest) {
    for (const int64_t n : {1, 5, 16, 33, 100}) {
        const std::vector<float> x = random_values(n, n, 5);
        std::vector<int8_t> q(n);
        const float scale = cpu.quantize(q.data(), x.data(), n);
        float largest = 0;
        for (const float value : x) largest = std::max(largest, std::abs(value));
        EXPECT_FLOAT_EQ(scale, largest / 127);
        for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(q[i] * scale, x[i], scale * 0.5001);
    }
    const std::vector<float> zeros(20);
    std::vector<int8_t> q(20, 1);
    EXPECT_EQ(cpu.quantize(q.data(), zeros.data(), 20), 0);
    EXPECT_EQ(q, std::vector<int8_t>(20));
}

TEST_P(Loops, FinishesInt8Products) {
    for (const int64_t n : {1, 37, 300}) {
        std::vector<int32_t> sums(n);
        std::vector<double> expected;
        const std::vector<float> scales = random_values(n, 1), bias = random_values(n, 2);
        const std::vector<float> residual = random_values(n, 3);
        for (int64_t i = 0; i < n; ++i) {
            sums[i] = static_cast<int32_t>(i * 1000 - 5000);
            const double v = sums[i] * 1e-4 * scales[i] + bias[i];
            expected.push_back(residual[i] + 0.5 * v * std::erfc(-v / std::sqrt(2.0)));
        }
        std::vector<float> y(n);
        cpu.finish_int8(y.data(), sums.data(), 1e-4f, scales.data(), bias.data(), residual.data(),
                        n, Activation::gelu);
        expect_near(y, expected, 2e-6);
    }
}

TEST_P(Loops, ProductsOfEveryDtypeAndSize) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
        for (const int64_t k : {1, 15, 16, 40, 129})
            for (const int64_t t : {1, 2, 3, 4, 6, 16}) {
                constexpr int64_t n = 11;
                TestDevice device(kCpuCase);
                std::vector<float> w = random_values(n * k, 1);
                const Tensor stored = device.up(w, dtype, {n, k});
                w = TestDevice::rounded(w, dtype);
                const std::vector<float> x = random_values(t * (k + 2), 3);
                std::vector<double> expected;
                for (int64_t i = 0; i < t; ++i)
                    for (int64_t j = 2; j < n; ++j) {
                        double sum = 0;
                        for (int64_t m = 0; m < k; ++m)
                            sum += static_cast<double>(x[i * (k + 2) + m]) * w[j * k + m];
                        expected.push_back(sum);
                    }
                std::vector<float> y(t * (n - 2));
                cpu.products(y.data(), n - 2, x.data(), k + 2, t, {stored.data, dtype, k}, 2, n);
                expect_near(y, expected, 1e-5, 10);
            }
}

TEST_P(Loops, IntegerProductsAreExact) {
    for (const int64_t k : {1, 15, 32, 40, 129, 1536})
        for (const int64_t t : {1, 2, 3, 4, 6, 16}) {
            constexpr int64_t n = 11;
            const int64_t padded = (k + 31) / 32 * 32;
            const auto largest =
                static_cast<int32_t>(std::min<int64_t>(INT16_MAX, INT32_MAX / (127 * k)));
            std::vector<int8_t> w(n * k);
            std::vector<int16_t> x(t * padded, 0);
            for (size_t i = 0; i < w.size(); ++i)
                w[i] = static_cast<int8_t>(i < static_cast<size_t>(k) ? 127 : i * 37 % 255 - 127);
            for (int64_t i = 0; i < t; ++i)
                for (int64_t m = 0; m < k; ++m)
                    // The first row reaches the largest sum there can be.
                    x[i * padded + m] = static_cast<int16_t>(
                        i == 0 ? largest : (i * 7919 + m * 104729) % (2 * largest + 1) - largest);
            std::vector<int32_t> sums(t * n);
            cpu.products_int8(sums.data(), n, x.data(), padded, t, w.data(), k, n);
            for (int64_t i = 0; i < t; ++i)
                for (int64_t j = 0; j < n; ++j) {
                    int64_t expected = 0;
                    for (int64_t m = 0; m < k; ++m)
                        expected += int64_t{x[i * padded + m]} * w[j * k + m];
                    EXPECT_EQ(sums[i * n + j], expected) << k << " " << t;
                }
        }
}

TEST_P(Loops, BlockProductsAgreeWithTheSumInDouble) {
    for (const Dtype dtype : kQuantizedDtypes)
        for (const int64_t k : {256, 768})
            for (const int64_t t : {1, 2, 3, 4, 6, 16}) {
                constexpr int64_t n = 7;
                RandomBlocks blocks(dtype, n, k, 2);
                const int64_t shared = values_that_share(dtype);
                std::vector<int16_t> x(t * k);
                std::vector<float> scales, sums(t * k / shared);
                for (int64_t i = 0; i < t; ++i) {
                    scales.push_back(0.5f / static_cast<float>(i + 1));
                    for (int64_t j = 0; j < k; ++j) {
                        // The first row reaches the largest sums there can be.
                        const int64_t value =
                            i == 0 ? 32767 : (i * 7919 + j * 104729) % 65535 - 32767;
                        x[i * k + j] = static_cast<int16_t>(value);
                        sums[(i * k + j) / shared] += static_cast<float>(value);
                    }
                }
                std::vector<float> y(t * n);
                std::vector<uint8_t> scratch(kUnpackedRows * k / 32 * kUnpackedPiece);
                cpu.block_products(y.data(), n, {x.data(), scales.data(), sums.data()}, t,
                                   blocks.bytes().data(), dtype, k, n, scratch.data());
                const std::vector<float> w = blocks.values();
                for (int64_t i = 0; i < t; ++i)
                    for (int64_t j = 0; j < n; ++j) {
                        double sum = 0, size = 0;
                        for (int64_t m = 0; m < k; ++m) {
                            const double product = double{w[j * k + m]} * x[i * k + m] * scales[i];
                            sum += product;
                            size += std::abs(product);
                        }
                        EXPECT_NEAR(y[i * n + j], sum, 1e-6 * size)
                            << name_of(dtype) << " K " << k << " T " << t;
                    }
            }
}

TEST_P(Loops, LayerNormAgreesWithPyTorch) {
    const nlohmann::json& golden = kernels_golden()["layer_norm"];
    const std::vector<float> x = golden["x"], w = golden["w"], b = golden["b"];
    std::vector<float> y(x.size());
    for (size_t row = 0; row < x.size(); row += w.size())
        cpu.layer_norm(y.data() + row, x.data() + row, w.data(), b.data(), std::ssize(w), 1e-5f);
    expect_near(y, golden["y"].get<std::vector<double>>(), 1e-5);
}

// gradients_test compares them with differences, on the best of these alone.
TEST_P(Loops, GradientsOfAnyLengthAreThoseOfThePlainLoops) {
    const CpuKernels& plain = *all_cpu_kernels()[0];
    for (const int64_t n : {1, 7, 16, 37, 256, 515}) {
        SCOPED_TRACE(n);
        const auto size = static_cast<size_t>(n);
        const std::vector<float> x = random_values(n, 1), dy = random_values(n, 2);
        const std::vector<float> w = random_values(n, 3);
        const auto same = [&](const auto& run, double tolerance = 1e-5) {
            const std::vector<float> found = run(cpu), expected = run(plain);
            expect_near(found, std::vector<double>(expected.begin(), expected.end()), tolerance);
        };
        for (const Activation f : {Activation::gelu, Activation::gelu_tanh, Activation::silu})
            same([&](const CpuKernels& on) {
                std::vector<float> dx(size);
                on.activate_backward(dx.data(), dy.data(), x.data(), n, f);
                return dx;
            });
        same([&](const CpuKernels& on) {
            std::vector<float> to(3 * size, 0.5f);  // dx, dw, db
            const NormStatistics row =
                on.layer_norm_backward(to.data(), dy.data(), x.data(), w.data(), n, 1e-5f);
            on.norm_gradients(to.data() + n, to.data() + 2 * n, dy.data(), x.data(), &row, 1, n, n);
            on.add_rows(to.data() + 2 * n, dy.data(), 1, n, n);
            return to;
        });
        same([&](const CpuKernels& on) {
            std::vector<float> to(2 * size, 0.5f);  // dx, dw
            const float factor =
                on.rms_norm_backward(to.data(), dy.data(), x.data(), w.data(), n, 1e-5f);
            on.rms_norm_gradients(to.data() + n, dy.data(), x.data(), &factor, 1, n, n);
            return to;
        });
        same([&](const CpuKernels& on) {
            std::vector<float> ds = dy;
            on.scores_backward(ds.data(), x.data(), 0.3f, 0.7f, n);
            ds.push_back(on.dot(x.data(), dy.data(), n));
            ds.push_back(on.largest(x.data(), n));
            ds.push_back(static_cast<float>(on.sum_of_squares(x.data(), n)));
            return ds;
        });
        same([&](const CpuKernels& on) {
            std::vector<float> all = w;  // p, m, v
            all.insert(all.end(), x.begin(), x.end());
            for (const float v : dy) all.push_back(v * v);
            on.adamw(all.data(), all.data() + n, all.data() + 2 * n, dy.data(), n,
                     {0.5f, 0.9f, 0.95f, 0.1f, 0.99f, 1.5f, 1e-8f});
            return all;
        });
    }
}

TEST_P(Loops, RunsOfKeysPutTogetherAreTheWhole) {
    constexpr int64_t kHead = 37, kKeys = 50;
    TestDevice device(kCpuCase);
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
        const std::vector<float> q = random_values(kHead, 1, 3);
        const std::vector<float> k = TestDevice::rounded(random_values(kKeys * kHead, 2), dtype);
        const std::vector<float> v = TestDevice::rounded(random_values(kKeys * kHead, 3), dtype);
        const Tensor keys = device.up(k, dtype, {kKeys, kHead});
        const Tensor values = device.up(v, dtype, {kKeys, kHead});
        std::vector<float> out(kHead), part(kHead), scores(kKeys);
        // One block with all keys.
        const int64_t size = kKeys;
        const std::vector<int32_t> table = {0};
        AttentionSum sum = {out.data()}, next = {part.data()};
        const auto run = [&](AttentionSum& to, int64_t begin, int64_t end) {
            cpu.attend(to,
                       {.query = q.data(),
                        .keys = keys.data,
                        .values = values.data,
                        .dtype = dtype,
                        .blocks = table.data(),
                        .block_size = size,
                        .block_stride = size * kHead,
                        .first = begin,
                        .count = end - begin,
                        .head = kHead,
                        .scale = 0.3f},
                       scores.data());
        };
        run(sum, 0, 20);
        run(next, 20, kKeys);
        cpu.combine(sum, next, kHead);
        cpu.multiply(out.data(), out.data(), 1 / sum.total, kHead);
        std::vector<double> expected(kHead);
        double total = 0;
        for (int64_t j = 0; j < kKeys; ++j) {
            double score = 0;
            for (int64_t d = 0; d < kHead; ++d)
                score += static_cast<double>(q[d]) * k[j * kHead + d];
            const double e = std::exp(0.3 * score);
            total += e;
            for (int64_t d = 0; d < kHead; ++d) expected[d] += e * v[j * kHead + d];
        }
        for (double& value : expected) value /= total;
        expect_near(out, expected, 2e-6);
    }
}

INSTANTIATE_TEST_SUITE_P(Processors, Loops,
                         testing::ValuesIn(all_cpu_kernels().begin(), all_cpu_kernels().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace hark::test
