// Filters against references (tests/sampler_golden/gpt.py and samplers.py), draws against
// statistics.
#include "gpt/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/json/json.h"
#include "core/random.h"
#include "gpt/sampling/sampler_settings.h"
#include "kernels/sampling/distribution.h"
#include "support/golden.h"
#include "support/process.h"

using namespace hark;
using nlohmann::json;

namespace {

constexpr float kSamplerNever = -std::numeric_limits<float>::infinity();

void apply(const std::string& name, std::span<float> logits, std::span<const int32_t> history,
           double value) {
    if (name == "temperature") return gpt::apply_temperature(logits, value);
    if (name == "top_k") return gpt::keep_top_k(logits, static_cast<int64_t>(value));
    if (name == "top_p") return gpt::keep_top_p(logits, value);
    if (name == "min_p") return gpt::keep_min_p(logits, value);
    if (name == "repetition_penalty") return penalize_repetition(logits, history, value);
    ASSERT_EQ(name, "all");
    gpt::process_logits(
        logits, {history, history.size()},
        {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .min_p = 0.02, .repetition_penalty = 1.2});
}

void expect_result(const std::vector<float>& logits, const json& item) {
    for (size_t i = 0; i < logits.size(); ++i) {
        const json& wanted = item["result"][i];
        if (wanted.is_null())
            EXPECT_EQ(logits[i], kSamplerNever) << i;
        else
            EXPECT_NEAR(logits[i], wanted.get<float>(), 1e-5 * std::max(1.0f, std::abs(logits[i])))
                << i;
    }
}

// Options by the names of a JSON line.
gpt::SamplerOptions sampler_options_of(const json& fields) {
    gpt::SamplerSettings settings;
    EXPECT_EQ(settings.read(nlohmann::ordered_json(fields)), "");
    gpt::SamplerOptions options = {.temperature = 1, .top_k = 0, .top_p = 1};
    settings.apply_to(options);
    return options;
}

// Which token one set of options gives for the same logits with seeds 0 to n - 1.
std::vector<int32_t> tokens_of_seeds(const gpt::SamplerOptions& options,
                                     const std::vector<float>& logits, uint64_t n) {
    gpt::Sampler sampler(options);
    std::vector<int32_t> tokens;
    for (uint64_t seed = 0; seed < n; ++seed) {
        std::vector<float> row = logits;
        sampler.begin({}, seed);
        tokens.push_back(sampler(row));
    }
    return tokens;
}

}  // namespace

TEST(Sampler, FiltersEqualTransformers) {
    const json cases = test::golden("gpt.json")["samplers"];
    for (const json& item : cases) {
        SCOPED_TRACE(concat(item["filter"].dump(), " ", item["value"].dump()));
        auto logits = item["logits"].get<std::vector<float>>();
        const auto history = item["history"].get<std::vector<int32_t>>();
        apply(item["filter"], logits, history, item["value"]);
        expect_result(logits, item);
    }
    EXPECT_GT(cases.size(), 35u);
}

TEST(Sampler, FurtherFiltersEqualTheirReferences) {
    std::map<std::string, int> seen;
    const json cases = test::golden("samplers.json")["cases"];
    for (const json& item : cases) {
        SCOPED_TRACE(concat(item["filter"].dump(), " ", item["options"].dump()));
        auto logits = item["logits"].get<std::vector<float>>();
        const auto tokens = item["tokens"].get<std::vector<int32_t>>();
        gpt::SamplerOptions options = sampler_options_of(item["options"]);
        if (item["filter"] == "dry") item["options"]["breakers"].get_to(options.dry.breakers);
        if (item["filter"] == "xtc")
            gpt::exclude_top_choices(logits, options.xtc_threshold);
        else
            gpt::process_logits(logits, {tokens, item["prompt"]}, options);
        expect_result(logits, item);
        ++seen[item["filter"]];
    }
    EXPECT_EQ(seen.size(), 5u);
    EXPECT_EQ(seen["dry"], 40);
}

TEST(Sampler, MirostatEqualsItsReference) {
    const json runs = test::golden("samplers.json")["mirostat"];
    for (const json& run : runs) {
        gpt::Sampler sampler({.temperature = 1,
                              .mirostat = 2,
                              .mirostat_tau = run["tau"],
                              .mirostat_eta = run["eta"]});
        sampler.begin(std::vector<int32_t>(run["prompt"].get<size_t>()), run["seed"]);
        std::vector<int32_t> tokens;
        for (const json& row : run["rows"]) {
            auto logits = row.get<std::vector<float>>();
            tokens.push_back(sampler(logits));
        }
        EXPECT_EQ(tokens, run["tokens"].get<std::vector<int32_t>>());
    }
    EXPECT_EQ(runs.size(), 3u);
}

TEST(Sampler, TheUniformIsAFunctionOfSeedAndPosition) {
    const json uniforms = test::golden("samplers.json")["uniform"];
    EXPECT_EQ(uniforms.size(), 9u);
    for (const json& item : uniforms)
        EXPECT_EQ(uniform_at(item["seed"], item["position"]), item["uniform"].get<double>());
    // The same place of a sequence has the same draw, wherever its prompt ends.
    const std::vector<float> logits(1000);
    gpt::Sampler sampler({.temperature = 1, .top_k = 0, .top_p = 1});
    const auto after = [&](size_t prompt, size_t tokens) {
        sampler.begin(std::vector<int32_t>(prompt), 5);
        int32_t token = 0;
        for (size_t i = 0; i < tokens; ++i) {
            std::vector<float> row = logits;
            token = sampler(row);
        }
        return token;
    };
    EXPECT_EQ(after(3, 5), after(7, 1));
    EXPECT_EQ(after(3, 5), static_cast<int32_t>(uniform_at(5, 7) * 1000));
    EXPECT_NE(after(3, 4), after(3, 5));
}

TEST(Sampler, XtcExcludesAsOftenAsItsProbability) {
    // Of the three tokens above 0.1 the least likely one stays.
    const std::vector<float> logits = {std::log(0.3f), std::log(0.45f), std::log(0.2f),
                                       std::log(0.05f)};
    const auto share = [&](double probability, double threshold, int32_t token) {
        const auto tokens = tokens_of_seeds({.temperature = 1,
                                             .top_k = 0,
                                             .top_p = 1,
                                             .xtc_probability = probability,
                                             .xtc_threshold = threshold},
                                            logits, 20000);
        return static_cast<double>(std::count(tokens.begin(), tokens.end(), token)) / 20000;
    };
    EXPECT_NEAR(share(0, 0.1, 1), 0.45, 0.015);
    EXPECT_NEAR(share(0.4, 0.1, 1), 0.6 * 0.45, 0.015);
    EXPECT_EQ(share(1, 0.1, 1), 0);
    EXPECT_NEAR(share(1, 0.1, 2), 0.8, 0.015);
    EXPECT_NEAR(share(1, 0.51, 1), 0.45, 0.015);
}

TEST(Sampler, BiasComesFirst) {
    std::vector<float> logits = {1, 2, 3};
    gpt::process_logits(
        logits, {},
        {.temperature = 0.5, .top_k = 0, .top_p = 1, .logit_bias = {{0, 4.5}, {2, -100}, {7, 1}}});
    EXPECT_EQ(logits, (std::vector<float>{11, 4, -194}));
}

TEST(Sampler, OneTokenIsAlwaysLeft) {
    std::vector<float> logits = {0.5f, 3, -2, 3};
    gpt::process_logits(logits, {}, {.temperature = 1e-3, .top_k = 1, .top_p = 1e-9, .min_p = 1});
    EXPECT_EQ(std::count(logits.begin(), logits.end(), kSamplerNever), 3);
    EXPECT_EQ(argmax(logits), 1);
    gpt::keep_typical(logits, 1e-9);
    gpt::keep_surprise(logits, -1);
    gpt::exclude_top_choices(logits, 0);
    EXPECT_EQ(argmax(logits), 1);
    EXPECT_GT(logits[1], kSamplerNever);
}

TEST(Sampler, TemperatureZeroTakesTheLargestAfterThePenalties) {
    const auto greedy = [](gpt::SamplerOptions options, const std::vector<int32_t>& prompt) {
        options.temperature = 0;
        gpt::Sampler sampler(options);
        sampler.begin(prompt, 0);
        std::vector<float> logits = {1, 4, 3.5f, 4};
        return sampler(logits);
    };
    EXPECT_EQ(greedy({}, {}), 1);  // of equal ones the lowest id
    EXPECT_EQ(greedy({.repetition_penalty = 2}, {1}), 3);
    EXPECT_EQ(greedy({.presence_penalty = 2}, {1}), 1);  // the prompt does not count
    EXPECT_EQ(greedy({.dry = {.multiplier = 5, .allowed_length = 1}}, {0, 1, 3, 2, 0}), 3);
    EXPECT_EQ(greedy({.logit_bias = {{1, -1}, {3, -1}}}, {}), 2);
    EXPECT_EQ(greedy({.xtc_probability = 1, .mirostat = 2}, {}), 1);
}

TEST(Sampler, CountsAreOfTheAnswer) {
    gpt::Sampler sampler({.temperature = 0, .frequency_penalty = 1});
    sampler.begin(std::vector<int32_t>{2, 2, 2}, 0);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 5; ++i) {
        std::vector<float> logits = {1.5f, 1.6f, 3};
        tokens.push_back(sampler(logits));
    }
    EXPECT_EQ(tokens, (std::vector<int32_t>{2, 2, 1, 0, 2}));
}

TEST(Sampler, LogitsThatAreNoNumbersAreAnError) {
    gpt::Sampler sampler({});
    std::vector<float> logits = {1, std::nanf(""), 2};
    EXPECT_THROW(sampler(logits), Error);
}

TEST(Sampler, LogProbability) {
    const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
    EXPECT_NEAR(gpt::log_probability(logits, 1), std::log(0.25), 1e-6);
    const std::vector<float> large = {1000, 999};
    EXPECT_NEAR(gpt::log_probability(large, 0), -std::log(1 + std::exp(-1)), 1e-6);
}

TEST(Sampler, LikeliestTokens) {
    const std::vector<float> logits = {0, std::log(5.0f), std::log(2.0f), std::log(2.0f)};
    const auto best = gpt::likeliest_tokens(logits, 3);
    ASSERT_EQ(best.size(), 3u);
    EXPECT_EQ(best[0].token, 1);
    EXPECT_EQ(best[1].token, 2);
    EXPECT_EQ(best[2].token, 3);
    EXPECT_NEAR(best[0].logprob, std::log(0.5), 1e-6);
    EXPECT_NEAR(best[2].logprob, std::log(0.2), 1e-6);
    EXPECT_EQ(gpt::likeliest_tokens(logits, 9).size(), 4u);
}

TEST(Sampler, OnlySomeFiltersFitAGpu) {
    EXPECT_TRUE(
        (gpt::SamplerOptions{.top_k = 3, .min_p = 0.1, .repetition_penalty = 2}.fits_gpu()));
    for (const gpt::SamplerOptions& options : {gpt::SamplerOptions{.presence_penalty = 1},
                                               {.frequency_penalty = 1},
                                               {.typical_p = 0.9},
                                               {.xtc_probability = 0.1},
                                               {.mirostat = 2},
                                               {.dry = {.multiplier = 1}},
                                               {.logit_bias = {{1, 1}}}})
        EXPECT_FALSE(options.fits_gpu());
}

// The published first values of SplitMix64 for the seed 1234567.
TEST(Random, EqualsItsReference) {
    Random random(1234567);
    EXPECT_EQ(random.next(), 6457827717110365317u);
    EXPECT_EQ(random.next(), 3203168211198807973u);
    EXPECT_EQ(random.next(), 9817491932198370423u);
}
