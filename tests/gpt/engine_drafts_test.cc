// Texts with guessed tokens: those without.
#include "core/error.h"
#include "gpt/decoder/model.h"
#include "gpt/engines.h"
#include "support/scarce_memory.h"

namespace hark::gpt {
namespace {

class EngineDrafts : public Engines {
  protected:
    // Six texts that repeat themselves, so that guesses are right now and then.
    std::map<uint64_t, Text> run_repeating(EngineOptions options) {
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
    }
};

// Texts that repeat themselves, so that guesses are right now and then: the same bits.
TEST_P(EngineDrafts, GiveTheSameTextsWithDrafts) {
    for (const char* name : {"llama", "mistral, window", "gemma3", "deepseek_v2, lite"}) {
        SCOPED_TRACE(name);
        model(name);
        const auto expected = run_repeating({.max_sequences = 1, .prefix_cache = false});
        EXPECT_EQ(counts_.drafts, 0);
        // The host samples after drafts if there is a history: its logarithms are not the GPU's.
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
            expect_same(run_repeating(
                {.max_sequences = sequences, .prefix_cache = false, .draft_tokens = 7}));
            EXPECT_GT(counts_.accepted, 0);
            EXPECT_GT(counts_.drafts, counts_.accepted);
        }
        // Too many texts for a guess to have room, and a cache that is too small for all.
        expect_same(run_repeating({.max_sequences = 6, .pool_tokens = 200, .draft_tokens = 2}));
        EXPECT_GT(counts_.preemptions, 0);
    }
}

// A model that guesses for itself is right, another one now and then; the texts are the same.
TEST_P(EngineDrafts, GiveTheSameTextsWithADraftModel) {
    for (const char* name : {"llama", "mistral, window", "gemma3", "deepseek_v2, lite"}) {
        SCOPED_TRACE(name);
        model("qwen3");
        const std::unique_ptr<Model> other = std::move(model_);
        model(name);
        const auto expected = run_repeating({.max_sequences = 1, .prefix_cache = false});
        const auto expect_same = [&](EngineOptions options, const Model& draft, int64_t tokens) {
            options.draft_tokens = tokens;
            options.draft_model = &draft;
            for (const auto& [id, text] : run_repeating(options))
                EXPECT_EQ(text.tokens, expected.at(id).tokens) << "text " << id;
            EXPECT_GT(counts_.drafts, 0);
        };
        expect_same({.max_sequences = 1, .prefix_cache = false}, *model_, 4);
        EXPECT_GT(counts_.accepted, counts_.drafts * 9 / 10);
        if (!ctx().on_cuda()) {
            EXPECT_EQ(counts_.accepted, counts_.drafts);
        }
        expect_same({.max_sequences = 3, .prefix_cache = false}, *other, 7);
        EXPECT_GT(counts_.drafts, counts_.accepted);
        expect_same({.max_sequences = 6, .pool_tokens = 200}, *model_, 2);
        EXPECT_GT(counts_.preemptions, 0);
    }
}

// A draft model that has no memory for a text is left out; the text is the same.
TEST_P(EngineDrafts, GoOnWithoutTheDraftModelsMemory) {
    if (ctx().on_cuda()) GTEST_SKIP() << "a GPU takes the draft model's memory at the start";
    model("llama");
    const std::map<int64_t, Text> expected = run({}, {1, 2});
    Context scarce(ctx().device, ctx().device_index, test::ScarceMemory::of(ctx().arena.source()),
                   ctx().host_arena.source(), ctx().threads);
    scarce.batch_invariant = scarce.few_row_products = true;
    EngineOptions options{.context = context_, .pool_tokens = 4096, .draft_tokens = 4};
    options.draft_model = model_.get();
    Engine engine(scarce, *model_, vocabulary_, options);
    const auto tokens_of = [&](int64_t number) {
        std::vector<int32_t> tokens;
        engine.add(request_of(number, vocabulary_));
        while (!engine.is_idle()) {
            for (const EngineToken& token : engine.step()) {
                EXPECT_EQ(token.error, "");
                tokens.push_back(token.sampled.token);
            }
            test::ScarceMemory::is_spent = number == 1;  // after the prompt's pass
        }
        return tokens;
    };
    EXPECT_EQ(tokens_of(1), expected.at(1).tokens);
    EXPECT_EQ(engine.counts().drafts, 0);
    test::ScarceMemory::is_spent = false;
    EXPECT_EQ(tokens_of(2), expected.at(2).tokens);
    EXPECT_GT(engine.counts().drafts, 0);
}

// From half as many texts as a pass has rows on nothing is guessed.
TEST_P(EngineDrafts, GuessNothingForManyTexts) {
    model("llama");
    EngineOptions options{.max_sequences = 20, .context = context_, .draft_tokens = 4};
    options.draft_model = model_.get();
    Engine engine(ctx(), *model_, vocabulary_, options);
    for (int64_t number = 0; number < 20; ++number) {
        TextRequest request{.prompt = {1, 2}};
        request.max_tokens = 100;
        engine.add(std::move(request));
    }
    for (int i = 0; i < 40; ++i) engine.step();  // all have begun
    const int64_t drafts = engine.counts().drafts;
    EXPECT_GT(drafts, 0);  // of the first ones
    EXPECT_EQ(engine.counts().running, 20);
    for (int i = 0; i < 10; ++i) engine.step();
    EXPECT_EQ(engine.counts().drafts, drafts);
}

INSTANTIATE_TEST_SUITE_P(Devices, EngineDrafts, kEngineDevices, test::name_of_case);

}  // namespace
}  // namespace hark::gpt
