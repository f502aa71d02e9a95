#include "kernels/sampling/distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/random.h"
#include "kernels/cpu/cpu.h"

namespace hark {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Every kind of processor's loop against a sum in double.
TEST(Distribution, LogSumExp) {
    Random random(3);
    for (int64_t n : {1, 2, 7, 8, 9, 31, 100, 512, 513, 1501, 51865}) {
        std::vector<float> x(static_cast<size_t>(n));
        for (float& value : x)
            value = random.uniform() < 0.2 ? kNever : static_cast<float>(30 * random.uniform());
        x[0] = 3;
        double sum = 0;
        for (float value : x) sum += std::exp(static_cast<double>(value));
        for (const CpuKernels* cpu : all_cpu_kernels())
            EXPECT_NEAR(cpu->log_sum_exp(x.data(), n), std::log(sum), 1e-6) << cpu->name << n;
    }
}

TEST(Distribution, LogSumExpOfNothing) {
    const std::vector<float> never(1000, kNever);
    for (const CpuKernels* cpu : all_cpu_kernels()) {
        EXPECT_EQ(cpu->log_sum_exp(never.data(), 1000), kNever) << cpu->name;
        EXPECT_EQ(cpu->log_sum_exp(never.data(), 0), kNever) << cpu->name;
    }
}

TEST(Distribution, ArgmaxIsTheFirstOfEqualOnes) {
    EXPECT_EQ(argmax(std::vector<float>{kNever, 2, 5, 5, -1}), 2);
}

TEST(Distribution, TemperatureSharpensOrFlattensDraws) {
    const std::vector<float> logits = {0, std::log(2.0f)};
    Random random(9);
    int cold = 0, warm = 0, hot = 0;
    for (int i = 0; i < 30000; ++i) {
        const double u = random.uniform();
        cold += draw(logits, 0.5, u);
        warm += draw(logits, 1, u);
        hot += draw(logits, 1000, u);
    }
    EXPECT_NEAR(cold, 24000, 300);
    EXPECT_NEAR(warm, 20000, 300);
    EXPECT_NEAR(hot, 15000, 300);
}

TEST(Distribution, DrawsFollowTheProbabilities) {
    const std::vector<float> logits = {std::log(1.0f), kNever, std::log(2.0f), std::log(5.0f)};
    EXPECT_EQ(draw(logits, 1, 0), 0);
    EXPECT_EQ(draw(logits, 1, 0.124), 0);
    EXPECT_EQ(draw(logits, 1, 0.126), 2);
    EXPECT_EQ(draw(logits, 1, 0.376), 3);
    EXPECT_EQ(draw(logits, 1, std::nextafter(1.0, 0.0)), 3);
    Random random(5);
    int counts[4] = {};
    for (int i = 0; i < 80000; ++i) ++counts[draw(logits, 1, random.uniform())];
    EXPECT_EQ(counts[1], 0);
    EXPECT_NEAR(counts[0], 10000, 500);
    EXPECT_NEAR(counts[2], 20000, 700);
    EXPECT_NEAR(counts[3], 50000, 900);
}

}  // namespace
}  // namespace hark
