// Many texts at once: each has the tokens that it has alone.
#include "gpt/engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "gpt/answers/constraint.h"
#include "gpt/family_models.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/family_weights.h"
#include "support/model_tokenizer.h"
#include "support/ops.h"

namespace hark::gpt {
namespace {

using test::expect_contains;

constexpr int64_t kContext = 140;

// A text of `prompt` random tokens, of which the first `shared` are those of all texts.
TextRequest request_of(int64_t number, int64_t vocabulary, int64_t shared = 0) {
    Random random(static_cast<uint64_t>(number) + 1);
    TextRequest request;
    const int64_t prompt = shared + 1 + static_cast<int64_t>(random.uniform() * 60);
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
std::map<int64_t, Text> texts_of(Engine& engine, const std::vector<int64_t>& order,
                                 int64_t vocabulary, int64_t shared = 0) {
    std::map<uint64_t, int64_t> numbers;
    std::map<int64_t, Text> texts;
    for (const int64_t number : order)
        numbers[engine.add(request_of(number, vocabulary, shared))] = number;
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
                          request_of(numbers.at(token.id), vocabulary, shared).max_tokens);
        }
    return texts;
}

std::vector<int64_t> shuffled(int64_t n, uint64_t seed) {
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
    }
    Context& ctx() { return device_.ctx(); }
    void model(const std::string& name) {
        const DecoderConfig config = parse_config(family_config(name).dump(), name);
        test::FamilyWeights source(config.family.starts_with("gemma"));
        const bool is_f32 = GetParam().activations == Dtype::f32;
        model_ = std::make_unique<Model>(
            read_model(source, config, precision_of(is_f32 ? "f32" : "bf16", ctx().device),
                       ctx().arena.source()));
        vocabulary_ = config.n_vocab;
        context_ = std::min(kContext, config.n_positions);
    }
    // The texts of an engine with these options, and with `pool_tokens` for all.
    std::map<int64_t, Text> run(EngineOptions options, const std::vector<int64_t>& order,
                                int64_t shared = 0) {
        options.context = context_;
        if (options.pool_tokens == 0) options.pool_tokens = 4096;
        Engine engine(ctx(), *model_, vocabulary_, options);
        const int64_t blocks = engine.counts().free_blocks;
        auto texts = texts_of(engine, order, vocabulary_, shared);
        counts_ = engine.counts();
        EXPECT_EQ(counts_.free_blocks, blocks);
        return texts;
    }

    test::TestDevice device_{GetParam()};
    std::unique_ptr<Model> model_;
    int64_t vocabulary_ = 0, context_ = 0;
    EngineCounts counts_;
};

// With few_row_products, or batch_invariant on a GPU: whatever else runs, in pieces of any size,
// with shared beginnings, and after a text was computed again.
TEST_P(Engines, GiveEachTextWhatItHasAlone) {
    constexpr int64_t kTexts = 24, kShared = 45;
    for (const char* name :
         {"llama", "mistral, window", "gemma3", "mixtral", "deepseek_v2, lite"}) {
        SCOPED_TRACE(name);
        model(name);
        std::map<int64_t, Text> alone;
        for (int64_t i = 0; i < kTexts; ++i)
            alone.merge(run({.max_sequences = 1, .prefix_cache = false}, {i}, kShared));
        const std::vector<int64_t> order = shuffled(kTexts, 5);
        EXPECT_TRUE(run({.max_sequences = 7, .prefix_cache = false}, order, kShared) == alone);
        EXPECT_TRUE(run({.max_sequences = 20, .prompt_rows = 24}, order, kShared) == alone);
        EXPECT_GT(counts_.cached_tokens, 0);
        EXPECT_TRUE(run({.pool_tokens = 300}, order, kShared) == alone);
        EXPECT_GT(counts_.preemptions, 0);
    }
}

// What the tool does without --batch-invariant: a text's tokens depend on no neighbours either,
// as long as no beginnings are shared.
TEST_P(Engines, DependOnNoNeighboursOnTheCpu) {
    if (ctx().on_cuda()) GTEST_SKIP() << "a GPU packs prompts";
    ctx().few_row_products = false;
    model("llama");
    std::map<int64_t, Text> alone;
    for (int64_t i = 0; i < 20; ++i) alone.merge(run({.max_sequences = 1}, {i}));
    EXPECT_TRUE(run({.max_sequences = 20, .prefix_cache = false}, shuffled(20, 3)) == alone);
}

// Texts that repeat themselves, so that guesses are right now and then: the same bits.
TEST_P(Engines, GiveTheSameTextsWithDrafts) {
    for (const char* name : {"llama", "mistral, window", "gemma3", "deepseek_v2, lite"}) {
        SCOPED_TRACE(name);
        model(name);
        const auto run = [&](EngineOptions options) {
            options.context = context_;
            Engine engine(ctx(), *model_, vocabulary_, options);
            std::map<uint64_t, Text> texts;
            for (int64_t number = 0; number < 6; ++number) {
                TextRequest request = request_of(number, vocabulary_);
                request.prompt.resize(std::min<size_t>(request.prompt.size(), 5));
                while (request.prompt.size() < 60)
                    request.prompt.push_back(request.prompt[request.prompt.size() % 5 % 3]);
                request.max_tokens = 70;
                // A history that a GPU keeps, and that wrong guesses must not enter.
                if (number >= 4) request.sampler.repetition_penalty = 1.2;
                engine.add(std::move(request));
            }
            while (!engine.is_idle())
                for (const EngineToken& token : engine.step()) {
                    EXPECT_EQ(token.error, "");
                    Text& text = texts[token.id];
                    EXPECT_EQ(token.is_first, text.tokens.empty());
                    text.tokens.push_back(token.sampled.token);
                    text.logprobs.push_back(token.sampled.logprob);
                    EXPECT_EQ(token.is_last, text.tokens.size() == 70u);
                }
            counts_ = engine.counts();
            return texts;
        };
        const auto expected = run({.max_sequences = 1, .prefix_cache = false});
        EXPECT_EQ(counts_.drafts, 0);
        // The host samples after drafts where there is a history: its logarithms are not the GPU's.
        const auto expect_same = [&](const std::map<uint64_t, Text>& texts) {
            for (const auto& [id, text] : texts) {
                SCOPED_TRACE(concat("text ", id));
                const Text& other = expected.at(id);
                EXPECT_EQ(text.tokens, other.tokens);
                if (!ctx().on_cuda() || id < 4) {
                    EXPECT_EQ(text.logprobs, other.logprobs);
                    continue;
                }
                ASSERT_EQ(text.logprobs.size(), other.logprobs.size());
                for (size_t i = 0; i < text.logprobs.size(); ++i)
                    EXPECT_NEAR(text.logprobs[i], other.logprobs[i], 1e-4);
            }
        };
        for (const int64_t sequences : {1, 3}) {
            expect_same(
                run({.max_sequences = sequences, .prefix_cache = false, .draft_tokens = 7}));
            EXPECT_GT(counts_.accepted, 0);
            EXPECT_GT(counts_.drafts, counts_.accepted);
        }
        // So many texts that a guess has no room, and a cache that is too small for all.
        expect_same(run({.max_sequences = 6, .pool_tokens = 200, .draft_tokens = 2}));
        EXPECT_GT(counts_.preemptions, 0);
    }
}

// A GPU samples with masks that the host makes from the tokens of the pass before: it gives what
// the host does, which samples where the likeliest tokens are wanted.
TEST_P(Engines, ConstrainTextsAsTheHostDoes) {
    const Tokenizer tokenizer = test::model_tokenizer("smollm3");
    Constraints constraints(tokenizer, {}, nullptr);
    model("llama");
    const auto run = [&](int64_t likeliest, EngineOptions options) {
        options.context = context_;
        Engine engine(ctx(), *model_, vocabulary_, options);
        std::map<uint64_t, std::vector<int32_t>> texts;
        for (int64_t number = 0; number < 12; ++number) {
            TextRequest request = request_of(number, vocabulary_, 3);
            request.max_tokens += 20;
            request.likeliest = likeliest;
            if (number % 4 == 1) request.sampler.repetition_penalty = 1.3;
            if (number % 5 != 4)  // neighbours without a constraint, in the same passes
                request.sampler.constraint =
                    constraints.masks({ConstraintRequest::Kind::regex,
                                       number % 2 == 0 ? "([a-z]{1,4}[,;])*" : "(ab|cd)*"},
                                      false);
            engine.add(std::move(request));
        }
        while (!engine.is_idle())
            for (const EngineToken& token : engine.step()) {
                EXPECT_EQ(token.error, "");
                texts[token.id].push_back(token.sampled.token);
            }
        counts_ = engine.counts();
        return texts;
    };
    const auto expected = run(1, {.max_sequences = 5});
    std::string odd;
    for (const int32_t id : expected.at(1)) odd += tokenizer.bytes_of(id);
    EXPECT_TRUE(odd.find_first_not_of("abcd") == std::string::npos) << odd;
    EXPECT_EQ(run(0, {.max_sequences = 5}), expected);
    EXPECT_EQ(run(0, {.max_sequences = 12, .pool_tokens = 300}), expected);
    EXPECT_GT(counts_.preemptions, 0);
    EXPECT_EQ(run(0, {.max_sequences = 5, .draft_tokens = 3}), expected);
}

// The first token that the constraint allows has no probability: that text has an error alone.
TEST_P(Engines, GiveTheErrorOfAConstraint) {
    model("llama");
    const Tokenizer tokenizer = test::model_tokenizer("smollm3");
    Constraints constraints(tokenizer, {}, nullptr);
    TextRequest wrong, right;
    wrong.prompt = right.prompt = {1, 2};
    wrong.max_tokens = right.max_tokens = 4;
    wrong.sampler.constraint = constraints.masks({ConstraintRequest::Kind::regex, "z+"}, false);
    constexpr int64_t kBelowLetters = 5;  // tokens
    Engine engine(ctx(), *model_, kBelowLetters, {.context = context_});
    const uint64_t a = engine.add(right), b = engine.add(wrong);
    std::map<uint64_t, std::vector<std::string>> errors;
    while (!engine.is_idle())
        for (const EngineToken& token : engine.step()) errors[token.id].push_back(token.error);
    EXPECT_EQ(errors.at(a), std::vector<std::string>(4));
    ASSERT_EQ(errors.at(b).size(), 1u);
    expect_contains(errors.at(b)[0], "no token of the model continues the text");
}

// Prompts that share passes on a GPU: all tokens come, whatever they are.
TEST_P(Engines, PackPrompts) {
    ctx().batch_invariant = false;
    model("llama");
    const auto texts = run({.max_sequences = 9, .prompt_rows = 50}, shuffled(40, 1), 33);
    EXPECT_EQ(texts.size(), 40u);
    EXPECT_GT(counts_.cached_tokens, 0);
}

TEST_P(Engines, ShareBeginnings) {
    model("llama");
    Engine engine(ctx(), *model_, vocabulary_, {.context = context_, .pool_tokens = 2000});
    for (const int64_t number : {1, 2}) {
        const auto texts = texts_of(engine, {number}, vocabulary_, 50);
        EXPECT_EQ(texts.at(number).cached, number == 1 ? 0 : 32);
    }
    EXPECT_EQ(engine.counts().cached_tokens, 32);
}

TEST_P(Engines, EndTexts) {
    model("llama");
    Engine engine(ctx(), *model_, vocabulary_, {.max_sequences = 2, .context = context_});
    const int64_t blocks = engine.counts().free_blocks;
    std::vector<uint64_t> ids;
    for (int64_t number = 0; number < 4; ++number) {
        TextRequest request = request_of(number, vocabulary_);
        request.max_tokens = 20;
        ids.push_back(engine.add(std::move(request)));
    }
    engine.step();
    engine.end(ids[0]);  // one that has begun
    engine.end(ids[3]);  // one that waits
    engine.end(ids[3]);
    std::map<uint64_t, int64_t> counts;
    while (!engine.is_idle())
        for (const EngineToken& token : engine.step()) ++counts[token.id];
    EXPECT_EQ(counts, (std::map<uint64_t, int64_t>{{ids[1], 20}, {ids[2], 20}}));
    EXPECT_EQ(engine.counts().free_blocks, blocks);
}

// A step is one pass: while a long prompt is read, texts can be ended, and it too.
TEST_P(Engines, EndPromptsWhileTheyAreRead) {
    model("llama");
    Engine engine(ctx(), *model_, vocabulary_, {.context = context_, .prompt_rows = 24});
    const int64_t blocks = engine.counts().free_blocks;
    TextRequest request = request_of(0, vocabulary_);
    request.prompt.resize(120, 1);
    const uint64_t id = engine.add(request);
    EXPECT_TRUE(engine.step().empty());
    EXPECT_LT(engine.counts().free_blocks, blocks);
    engine.end(id);
    while (!engine.is_idle()) EXPECT_TRUE(engine.step().empty());
    EXPECT_EQ(engine.counts().free_blocks, blocks);
}

TEST_P(Engines, RefuseWhatNeverFits) {
    model("llama");
    Engine engine(ctx(), *model_, vocabulary_, {.context = context_, .pool_tokens = 64});
    TextRequest request = request_of(0, vocabulary_);
    request.prompt.resize(60, 1);
    request.max_tokens = 5;
    engine.add(request);
    request.max_tokens = 6;
    const std::string error = test::error_of([&] { engine.add(request); });
    expect_contains(error, "has memory for 64 tokens");
    expect_contains(error, "found a prompt and answer of 65");
    expect_contains(test::error_of([&] { engine.add({}); }), "the prompt has no tokens");
}

TEST_P(Engines, GiveTheErrorOfOneText) {
    model("llama");
    // NaN weights of a token that only one text has.
    const Tensor row = model_->token_table.values.slice(3, 4);
    const std::vector<uint8_t> nan(row.bytes(), 0xff);  // in every type
    ctx().arena.source().write(row.data, nan.data(), nan.size());
    Engine engine(ctx(), *model_, vocabulary_, {.context = context_});
    TextRequest right, wrong;
    right.prompt = {1, 2};
    wrong.prompt = {1, 3};
    right.sampler.temperature = wrong.sampler.temperature = 0;
    right.sampler.logit_bias = {{3, -1e9}};
    const uint64_t a = engine.add(right), b = engine.add(wrong);
    std::map<uint64_t, std::string> errors;
    while (!engine.is_idle())
        for (const EngineToken& token : engine.step()) errors[token.id] = token.error;
    expect_contains(errors.at(b), "NaN");
    EXPECT_TRUE(errors.contains(a));
}

INSTANTIATE_TEST_SUITE_P(Devices, Engines,
                         testing::Values(test::kCpuCase, test::kCudaF32Case, test::kCudaBf16Case),
                         test::name_of_case);

}  // namespace
}  // namespace hark::gpt
