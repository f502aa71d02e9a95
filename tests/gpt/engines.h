// Engines of the tiny models of tests/golden/families.json, and the texts that are asked of them.
#pragma once

#include "gpt/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/random.h"
#include "gpt/decoder/model.h"
#include "gpt/family_models.h"
#include "support/family_weights.h"
#include "support/ops.h"

namespace hark::gpt {

constexpr int64_t kEngineContext = 140;

struct Prompts {
    int64_t shared = 0;     // first tokens, which all have
    bool has_long = false;  // one of 100 has about 300 tokens, one of 500 about 2,100
};

// A text of 1 to 60 random tokens after the shared ones.
inline TextRequest request_of(int64_t number, int64_t vocabulary, const Prompts& prompts = {}) {
    Random random(static_cast<uint64_t>(number) + 1);
    TextRequest request;
    const int64_t shared = prompts.shared;
    int64_t prompt = shared + 1 + static_cast<int64_t>(random.uniform() * 60);
    if (prompts.has_long && number % 100 == 0) prompt += number % 500 == 0 ? 2050 : 250;
    for (int64_t i = 0; i < prompt; ++i) {
        const double u = i < shared ? uniform_at(99, static_cast<uint64_t>(i)) : random.uniform();
        request.prompt.push_back(static_cast<int32_t>(u * static_cast<double>(vocabulary)));
    }
    request.max_tokens = 1 + static_cast<int64_t>(random.uniform() * 30);
    request.seed = static_cast<uint64_t>(number);
    // Greedy and drawn ones, and one filter that only the host has.
    request.sampler.temperature = number % 3 == 0 ? 0 : 1;
    if (number % 3 == 2) request.sampler.presence_penalty = 0.5;
    return request;
}

struct Text {
    std::vector<int32_t> tokens;
    std::vector<double> logprobs;
    int64_t cached = 0;
    bool operator==(const Text& other) const {
        return tokens == other.tokens && logprobs == other.logprobs;
    }
};

// The tokens of texts that are added in this order.
inline std::map<int64_t, Text> texts_of(Engine& engine, const std::vector<int64_t>& order,
                                        int64_t vocabulary, const Prompts& prompts = {}) {
    std::map<uint64_t, int64_t> numbers;
    std::map<int64_t, Text> texts;
    for (const int64_t number : order)
        numbers[engine.add(request_of(number, vocabulary, prompts))] = number;
    while (!engine.is_idle())
        for (const EngineToken& token : engine.step()) {
            EXPECT_EQ(token.error, "");
            Text& text = texts[numbers.at(token.id)];
            EXPECT_EQ(token.is_first, text.tokens.empty());
            text.tokens.push_back(token.sampled.token);
            text.logprobs.push_back(token.sampled.logprob);
            text.cached = token.cached_tokens;
            EXPECT_EQ(token.is_last,
                      std::ssize(text.tokens) ==
                          request_of(numbers.at(token.id), vocabulary, prompts).max_tokens);
        }
    return texts;
}

inline std::vector<int64_t> shuffled(int64_t n, uint64_t seed) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    Random random(seed);
    for (size_t i = order.size() - 1; i > 0; --i)
        std::swap(order[i], order[random.next() % (i + 1)]);
    return order;
}

class Engines : public testing::TestWithParam<test::DeviceCase> {
  protected:
    void SetUp() override {
        if (!device_) GTEST_SKIP() << device_.why_not();
        ctx().batch_invariant = ctx().few_row_products = true;
        ctx().threads = 1;  // waking others takes longer than what models so small give them
    }
    Context& ctx() { return device_.ctx(); }
    // `positions` of 0: the model's own, and texts of kEngineContext.
    void model(const std::string& name, int64_t positions = 0) {
        DecoderConfig config = parse_config(family_config(name).dump(), name);
        config.n_positions = std::max(config.n_positions, positions);
        test::FamilyWeights source(config.family.starts_with("gemma"));
        const bool is_f32 = GetParam().activations == Dtype::f32;
        model_ = std::make_unique<Model>(
            read_model(source, config, precision_of(is_f32 ? "f32" : "bf16", ctx().device),
                       ctx().arena.source()));
        vocabulary_ = config.n_vocab;
        context_ = positions > 0 ? positions : std::min(kEngineContext, config.n_positions);
    }
    // The texts of an engine with these options, and with `pool_tokens` for all.
    std::map<int64_t, Text> run(EngineOptions options, const std::vector<int64_t>& order,
                                const Prompts& prompts = {}) {
        options.context = context_;
        if (options.pool_tokens == 0) options.pool_tokens = 4096;
        Engine engine(ctx(), *model_, vocabulary_, options);
        const int64_t blocks = engine.counts().free_blocks;
        auto texts = texts_of(engine, order, vocabulary_, prompts);
        counts_ = engine.counts();
        EXPECT_EQ(counts_.free_blocks, blocks);
        return texts;
    }

    test::TestDevice device_{GetParam()};
    std::unique_ptr<Model> model_;
    int64_t vocabulary_ = 0, context_ = 0;
    EngineCounts counts_;
};

inline const auto kEngineDevices =
    testing::Values(test::kCpuCase, test::kCudaF32Case, test::kCudaBf16Case);

}  // namespace hark::gpt
