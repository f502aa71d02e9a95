// Many texts at once: each has the tokens that it has alone.
#include "gpt/engines.h"

#include <utility>

#include "core/error.h"
#include "gpt/answers/constraint.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/model_tokenizer.h"
#include "support/scarce_memory.h"

namespace hark::gpt {
namespace {

using test::expect_contains;

// With few_row_products, or batch_invariant on a GPU: whatever else runs, in pieces of any size,
// with shared beginnings, and after a text was computed again.
TEST_P(Engines, GiveEachTextWhatItHasAlone) {
    constexpr int64_t kTexts = 24;
    const Prompts shared{.shared = 45};
    for (const char* name :
         {"llama", "mistral, window", "gemma3", "mixtral", "deepseek_v2, lite"}) {
        SCOPED_TRACE(name);
        model(name);
        ctx().threads = 1;
        std::map<int64_t, Text> alone;
        for (int64_t i = 0; i < kTexts; ++i)
            alone.merge(run({.max_sequences = 1, .prefix_cache = false}, {i}, shared));
        ctx().threads = 2;  // whatever their number
        const std::vector<int64_t> order = shuffled(kTexts, 5);
        EXPECT_TRUE(run({.max_sequences = 7, .prefix_cache = false}, order, shared) == alone);
        EXPECT_TRUE(run({.max_sequences = 20, .prompt_rows = 24}, order, shared) == alone);
        EXPECT_GT(counts_.cached_tokens, 0);
        EXPECT_TRUE(run({.pool_tokens = 300}, order, shared) == alone);
        EXPECT_GT(counts_.preemptions, 0);
    }
}

// A thousand prompts in random order have the bytes that each has alone: with shared beginnings
// and without, in pieces of 256 and 2,048 rows, and with preemptions.
TEST_P(Engines, GiveAThousandTextsWhatEachHasAlone) {
    constexpr int64_t kTexts = 1000;
    const Prompts prompts{.shared = 33, .has_long = true};
    model("llama", 2300);
    std::map<int64_t, Text> alone;
    const int threads = std::exchange(ctx().threads, 1);  // two would mostly wait for each other
    {
        Engine engine(ctx(), *model_, vocabulary_,
                      {.max_sequences = 1, .context = context_, .prefix_cache = false});
        for (int64_t i = 0; i < kTexts; ++i)
            alone.merge(texts_of(engine, {i}, vocabulary_, prompts));
    }
    ctx().threads = threads;
    for (const bool shares : {false, true})
        for (const int64_t rows : {256, 2048}) {
            SCOPED_TRACE(concat(rows, " rows", shares ? ", with shared beginnings" : ""));
            const auto order = shuffled(kTexts, static_cast<uint64_t>(rows) + (shares ? 1 : 0));
            EXPECT_TRUE(run({.max_sequences = 32,
                             .prompt_rows = rows,
                             .pool_tokens = 2560,
                             .prefix_cache = shares},
                            order, prompts) == alone);
            EXPECT_GT(counts_.preemptions, 0);
            EXPECT_EQ(counts_.cached_tokens > 0, shares);
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

// A pass of a GPU may have the next tokens of texts and parts of prompts.
TEST_P(Engines, MixedPassesGiveTheTextsOfTurns) {
    if (!ctx().on_cuda() || GetParam().activations != Dtype::f32)
        GTEST_SKIP() << "passes of f32 on a GPU are compared";
    ctx().batch_invariant = false;
    for (const char* name : {"llama", "gemma3", "deepseek_v2, lite"}) {
        SCOPED_TRACE(name);
        model(name);
        const auto order = shuffled(40, 5);
        const auto turns = run({.max_sequences = 12, .mixed_rows = 0}, order);
        const auto mixed = run({.max_sequences = 12, .mixed_rows = 48}, order);
        for (const auto& [number, text] : turns)
            EXPECT_EQ(mixed.at(number).tokens, text.tokens) << "text " << number;
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
            TextRequest request = request_of(number, vocabulary_, {.shared = 3});
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
    const auto texts =
        run({.max_sequences = 9, .prompt_rows = 50}, shuffled(40, 1), {.shared = 33});
    EXPECT_EQ(texts.size(), 40u);
    EXPECT_GT(counts_.cached_tokens, 0);
}

TEST_P(Engines, ShareBeginnings) {
    model("llama");
    Engine engine(ctx(), *model_, vocabulary_, {.context = context_, .pool_tokens = 2000});
    for (const int64_t number : {1, 2}) {
        const auto texts = texts_of(engine, {number}, vocabulary_, {.shared = 50});
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

// What a pass of the engine throws ends its texts: the others continue.
TEST_P(Engines, GoOnAfterAPassThatFailed) {
    if (ctx().on_cuda()) GTEST_SKIP() << "a GPU does not check tokens";
    model("llama");
    const std::map<int64_t, Text> alone = run({}, {1});
    for (const int64_t drafts : {0, 3}) {
        Engine engine(ctx(), *model_, vocabulary_,
                      {.context = context_, .pool_tokens = 2000, .draft_tokens = drafts});
        const int64_t blocks = engine.counts().free_blocks;
        TextRequest wrong = request_of(2, vocabulary_);
        wrong.prompt.back() = static_cast<int32_t>(vocabulary_);  // no row of the embedding
        const uint64_t right = engine.add(request_of(1, vocabulary_));
        std::vector<EngineToken> tokens = engine.step();  // its prompt
        const uint64_t failed = engine.add(wrong), later = engine.add(request_of(1, vocabulary_));
        std::map<uint64_t, std::vector<int32_t>> texts;
        std::map<uint64_t, std::string> errors;
        for (; !engine.is_idle() || !tokens.empty(); tokens = engine.step())
            for (const EngineToken& token : tokens) {
                EXPECT_FALSE(errors.contains(token.id));
                EXPECT_FALSE(token.is_out_of_memory);
                if (!token.error.empty()) errors[token.id] = token.error;
                if (token.error.empty()) texts[token.id].push_back(token.sampled.token);
            }
        ASSERT_EQ(errors.size(), 1u);
        expect_contains(errors.at(failed), "outside the vocabulary");
        EXPECT_EQ(texts.at(right), alone.at(1).tokens);
        EXPECT_EQ(texts.at(later), alone.at(1).tokens);
        EXPECT_EQ(engine.counts().free_blocks, blocks);
    }
}

TEST_P(Engines, GoOnWhenMemoryIsThereAgain) {
    model("llama");
    const std::map<int64_t, Text> alone = run({}, {1});
    Context scarce(ctx().device, ctx().device_index, test::ScarceMemory::of(ctx().arena.source()),
                   ctx().host_arena.source(), ctx().threads, ctx().stream, ctx().handles);
    scarce.batch_invariant = scarce.few_row_products = true;
    Engine engine(scarce, *model_, vocabulary_, {.context = context_, .pool_tokens = 2000});
    const int64_t blocks = engine.counts().free_blocks;
    test::ScarceMemory::is_spent = true;  // before the first pass has taken any
    const uint64_t failed = engine.add(request_of(1, vocabulary_));
    const std::vector<EngineToken> tokens = engine.step();
    test::ScarceMemory::is_spent = false;
    ASSERT_EQ(tokens.size(), 1u);
    EXPECT_EQ(tokens[0].id, failed);
    EXPECT_TRUE(tokens[0].is_out_of_memory);
    expect_contains(tokens[0].error, "needed ");
    EXPECT_TRUE(engine.is_idle());
    EXPECT_EQ(texts_of(engine, {1}, vocabulary_), alone);
    EXPECT_EQ(engine.counts().free_blocks, blocks);
}

// Texts that have no memory wait for those that run. One that is alone and has none fails.
TEST_P(Engines, WaitWhereThereIsNoSlab) {
    if (ctx().on_cuda()) GTEST_SKIP() << "a GPU's slabs are larger than these caches";
    model("llama");
    const std::vector<int64_t> order = shuffled(12, 3);
    const std::map<int64_t, Text> expected = run({}, order);
    Context scarce(ctx().device, ctx().device_index, test::ScarceMemory::of(ctx().arena.source()),
                   ctx().host_arena.source(), ctx().threads);
    scarce.batch_invariant = scarce.few_row_products = true;
    Engine engine(scarce, *model_, vocabulary_, {.context = context_, .pool_tokens = 4096});
    EXPECT_EQ(engine.counts().cache_bytes, 0);
    test::ScarceMemory::most_slab_bytes = 0;
    const uint64_t failed = engine.add(request_of(1, vocabulary_));
    const uint64_t later = engine.add(request_of(2, vocabulary_));
    const std::vector<EngineToken> tokens = engine.step();
    ASSERT_EQ(tokens.size(), 1u);
    EXPECT_EQ(tokens[0].id, failed);
    EXPECT_TRUE(tokens[0].is_out_of_memory);
    test::expect_contains(tokens[0].error, "needed a slab");
    engine.end(later);
    // Memory for one text of kEngineContext, and some more.
    const int64_t token = engine.cache_bytes() / 4096;
    test::ScarceMemory::most_slab_bytes = token * (kEngineContext + 4 * kBlockTokens);
    EXPECT_EQ(texts_of(engine, order, vocabulary_), expected);
    EXPECT_GT(engine.counts().preemptions, 0);
    EXPECT_GT(engine.counts().cache_bytes, 0);
    EXPECT_LE(engine.counts().cache_bytes, test::ScarceMemory::most_slab_bytes);
    engine.give_memory_back();
    EXPECT_EQ(engine.counts().cache_bytes, 0);
    EXPECT_EQ(engine.counts().free_blocks, engine.counts().blocks);
}

INSTANTIATE_TEST_SUITE_P(Devices, Engines, kEngineDevices, test::name_of_case);

}  // namespace
}  // namespace hark::gpt
