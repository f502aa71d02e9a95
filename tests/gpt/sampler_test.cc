// Filters against transformers' logits processors (tests/golden/gpt.py), draws against statistics.
#include "gpt/engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/sampling/distribution.h"
#include "support/process.h"

using namespace hark;
using nlohmann::json;

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void apply(const std::string& name, std::span<float> logits, std::span<const int32_t> history,
           double value) {
    if (name == "temperature") return gpt::apply_temperature(logits, value);
    if (name == "top_k") return gpt::keep_top_k(logits, static_cast<int64_t>(value));
    if (name == "top_p") return gpt::keep_top_p(logits, value);
    if (name == "min_p") return gpt::keep_min_p(logits, value);
    if (name == "repetition_penalty") return penalize_repetition(logits, history, value);
    ASSERT_EQ(name, "all");
    gpt::process_logits(
        logits, history,
        {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .min_p = 0.02, .repetition_penalty = 1.2});
}

}  // namespace

TEST(Sampler, FiltersEqualTransformers) {
    const json golden = json::parse(test::read_text(test::source_dir() / "tests/golden/gpt.json"));
    for (const json& item : golden["samplers"]) {
        auto logits = item["logits"].get<std::vector<float>>();
        const auto history = item["history"].get<std::vector<int32_t>>();
        apply(item["filter"], logits, history, item["value"]);
        for (size_t i = 0; i < logits.size(); ++i) {
            const json& wanted = item["result"][i];
            if (wanted.is_null())
                EXPECT_EQ(logits[i], kNever) << item["filter"] << " " << item["value"] << " " << i;
            else
                EXPECT_NEAR(logits[i], wanted.get<float>(), 1e-5)
                    << item["filter"] << " " << item["value"] << " " << i;
        }
    }
    EXPECT_GT(golden["samplers"].size(), 35u);
}

TEST(Sampler, OneTokenIsAlwaysLeft) {
    std::vector<float> logits = {0.5f, 3, -2, 3};
    gpt::process_logits(logits, {}, {.temperature = 1e-3, .top_k = 1, .top_p = 1e-9, .min_p = 1});
    EXPECT_EQ(std::count(logits.begin(), logits.end(), kNever), 3);
    EXPECT_EQ(argmax(logits), 1);
}

TEST(Sampler, TemperatureZeroTakesTheLargestAfterThePenalty) {
    Random random(0);
    std::vector<float> logits = {1, 4, 3.5f};
    EXPECT_EQ(gpt::sample(logits, {}, {.temperature = 0}, random), 1);
    const int32_t history[] = {1};
    logits = {1, 4, 3.5f};
    EXPECT_EQ(gpt::sample(logits, history, {.temperature = 0, .repetition_penalty = 2}, random), 2);
}

TEST(Sampler, LogProbability) {
    const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
    EXPECT_NEAR(gpt::log_probability(logits, 1), std::log(0.25), 1e-6);
    const std::vector<float> large = {1000, 999};
    EXPECT_NEAR(gpt::log_probability(large, 0), -std::log(1 + std::exp(-1)), 1e-6);
}

// The published first values of SplitMix64 for the seed 1234567.
TEST(Random, EqualsItsReference) {
    Random random(1234567);
    EXPECT_EQ(random.next(), 6457827717110365317u);
    EXPECT_EQ(random.next(), 3203168211198807973u);
    EXPECT_EQ(random.next(), 9817491932198370423u);
}
