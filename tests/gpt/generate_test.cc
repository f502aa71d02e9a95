#include "gpt/answers/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/cli/ending_signal.h"
#include "core/error.h"
#include "core/json/json.h"
#include "gpt/decoder/model.h"
#include "gpt/engine/sequence.h"
#include "kernels/sampling/distribution.h"
#include "support/golden.h"
#include "support/process.h"
#include "text/bpe.h"

using namespace hark;

namespace {

struct GenerateDemo {
    gpt::Model model =
        gpt::load_model(test::source_dir() / "models/gpt-demo", precision_of("auto"));
    std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(test::source_dir() / "models/gpt-demo");
    Context ctx = make_cpu_context(1);

    gpt::Completion generate(gpt::GenerateOptions options, const std::string& prompt,
                             uint64_t index = 0) {
        std::string emitted;
        gpt::Generator generator(ctx, model, *tokenizer, std::move(options));
        gpt::Completion answer = generator(prompt, index, [&](std::string_view text) {
            EXPECT_FALSE(text.empty());
            EXPECT_TRUE(is_valid_utf8(text));
            emitted += text;
        });
        EXPECT_EQ(emitted, answer.text);
        EXPECT_EQ(answer.tokens.size(), answer.logprobs.size());
        return answer;
    }
};

GenerateDemo& demo() {
    static GenerateDemo kDemo;
    return kDemo;
}

gpt::GenerateOptions greedy(int64_t max_tokens) {
    gpt::GenerateOptions options;
    options.sampler.temperature = 0;
    options.max_tokens = max_tokens;
    return options;
}

// What a filter lets through when the text comes in these pieces; '|' ends a push.
std::string filtered(const std::vector<std::string>& stops,
                     const std::vector<std::string>& pieces) {
    gpt::StopFilter filter(stops);
    std::string out;
    for (const std::string& piece : pieces) {
        out += filter.push(piece) + "|";
        if (filter.stopped()) return out + "stopped";
    }
    return out + filter.finish();
}

}  // namespace

TEST(StopFilter, HoldsBackWhatMayBeginAStopString) {
    EXPECT_EQ(filtered({}, {"a", "b"}), "a|b|");
    EXPECT_EQ(filtered({"END"}, {"xE", "N", "Dy"}),
              "x||"
              "|stopped");
    EXPECT_EQ(filtered({"END"}, {"xE", "N", "xy"}), "x||ENxy|");
    EXPECT_EQ(filtered({"END"}, {"x", "EN"}), "x||EN");
    EXPECT_EQ(filtered({"END"}, {"EEN", "EEND"}), "E|ENE|stopped");
    EXPECT_EQ(filtered({"aab"}, {"aa", "a", "b"}), "|a||stopped");
    EXPECT_EQ(filtered({"\n\n", "stop"}, {"one\n", "two st", "op"}), "one|\ntwo ||stopped");
    EXPECT_EQ(filtered({"bcd", "abcde"}, {"xabc", "d"}), "x|a|stopped");
    EXPECT_EQ(filtered({"b", "a"}, {"xab"}), "x|stopped");
}

// Whatever the pieces: all of the text before the stop string that is whole first.
TEST(StopFilter, PiecesMakeNoDifference) {
    std::mt19937 random(3);
    for (int round = 0; round < 3000; ++round) {
        std::string text, stop;
        for (unsigned i = 0, n = random() % 20; i < n; ++i) text += "ab"[random() % 2];
        for (unsigned i = 0, n = 1 + random() % 4; i < n; ++i) stop += "ab"[random() % 2];
        gpt::StopFilter filter({stop, "abba"});
        std::string out;
        for (size_t at = 0; at < text.size() && !filter.stopped();) {
            const size_t n = 1 + random() % 3;
            out += filter.push(std::string_view(text).substr(at, n));
            at += n;
        }
        out += filter.finish();
        size_t wanted = text.size(), end = text.npos;
        for (const std::string& candidate : {std::string("abba"), stop}) {
            const size_t begin = text.find(candidate);
            if (begin == text.npos || begin + candidate.size() > end) continue;
            if (begin + candidate.size() < end || begin < wanted) wanted = begin;
            end = begin + candidate.size();
        }
        EXPECT_EQ(out, text.substr(0, wanted)) << text << " " << stop;
    }
}

TEST(Generate, GreedyEqualsGolden) {
    const auto golden = test::golden("gpt.json");
    for (const auto& item : golden["cases"]) {
        auto wanted = item["tokens"].get<std::vector<int32_t>>();
        wanted.resize(40);
        const auto end = std::find(wanted.begin(), wanted.end(), 4095);
        const bool ends = end != wanted.end();
        wanted.erase(end, wanted.end());
        const gpt::Completion answer = demo().generate(greedy(40), item["prompt"]);
        EXPECT_EQ(answer.tokens, wanted);
        EXPECT_EQ(answer.finish, ends ? gpt::Finish::end_of_text : gpt::Finish::length);
        EXPECT_EQ(answer.text, replace_invalid(demo().tokenizer->decode(wanted)));
    }
}

TEST(Generate, LogprobsAreTheModels) {
    gpt::GenerateOptions cold = greedy(5), hot = greedy(5);
    hot.sampler.temperature = 0.5;
    hot.sampler.top_k = 1;  // the same tokens, another distribution drawn from
    const auto a = demo().generate(cold, "Once upon"), b = demo().generate(hot, "Once upon");
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.logprobs, b.logprobs);
    gpt::Sequence sequence(demo().ctx, demo().model);
    const auto logits = sequence.forward_to_host(demo().ctx, demo().tokenizer->encode("Once upon"));
    EXPECT_DOUBLE_EQ(a.logprobs[0], gpt::log_probability(logits.first(4096), a.tokens[0]));
    for (double logprob : a.logprobs) EXPECT_LT(logprob, 0);
}

TEST(Generate, SeedsChooseTheText) {
    gpt::GenerateOptions options;
    options.max_tokens = 30;
    options.seed = 4;
    const auto first = demo().generate(options, "The king"),
               again = demo().generate(options, "The king");
    EXPECT_EQ(first.tokens, again.tokens);
    const auto second = demo().generate(options, "The king", 1);
    EXPECT_NE(first.tokens, second.tokens);
    options.seed = 5;
    EXPECT_EQ(demo().generate(options, "The king").tokens, second.tokens);
}

TEST(Generate, SamplesOfAPromptDiffer) {
    EXPECT_EQ(gpt::sample_seed(7, 0), 7u);
    std::set<uint64_t> seeds;
    for (uint64_t seed = 0; seed < 50; ++seed)
        for (int64_t sample = 0; sample < 50; ++sample)
            seeds.insert(gpt::sample_seed(seed, sample));
    EXPECT_EQ(seeds.size(), 2500u);
}

// One generator for requests of different options gives each what it gets alone.
TEST(Generate, OptionsOfARequestReplaceTheRuns) {
    gpt::Generator generator(demo().ctx, demo().model, *demo().tokenizer, greedy(8));
    const std::vector<int32_t> ids = demo().tokenizer->encode("The king");
    const std::vector<int32_t> plain = demo().generate(greedy(8), "The king").tokens;
    gpt::GenerateOptions other = greedy(8);
    other.sampler.logit_bias = {{plain[0], -100}};
    other.logprobs = 2;
    EXPECT_EQ(generator(ids, greedy(8), {}).tokens, plain);
    const gpt::Completion biased = generator(ids, other, {});
    EXPECT_NE(biased.tokens[0], plain[0]);
    EXPECT_EQ(biased.likeliest.size(), biased.tokens.size());
    EXPECT_EQ(biased.likeliest[0][0].token, plain[0]);  // under the model, before the bias
    EXPECT_EQ(biased.prompt_tokens, std::ssize(ids));
    EXPECT_GT(biased.seconds_to_first_token, 0);
    EXPECT_GT(biased.tokens_per_second, 0);
    EXPECT_EQ(generator(ids, greedy(8), {}).tokens, plain);
    other.sampler.logit_bias = {{4096, 1}};
    EXPECT_EQ(generator(ids, other, {}).error,
              "logit bias: expected tokens below 4096, found 4096");
    EXPECT_EQ(generator(ids, greedy(8), {}).tokens, plain);
}

TEST(Generate, IgnoreEosGoesOn) {
    gpt::GenerateOptions options = greedy(6);
    options.sampler.logit_bias = {{4095, 100}};  // <|endoftext|>
    EXPECT_EQ(demo().generate(options, "The king").tokens.size(), 0u);
    options.ignore_eos = true;
    EXPECT_EQ(demo().generate(options, "The king").tokens, std::vector<int32_t>(6, 4095));
}

// The demo's greedy text runs in a loop; DRY ends it.
TEST(Generate, DryEndsLoops) {
    const auto longest_repeat = [](const std::vector<int32_t>& tokens) {
        size_t longest = 0;
        for (size_t i = 0; i < tokens.size(); ++i)
            for (size_t j = i + 1; j < tokens.size(); ++j) {
                size_t n = 0;
                while (j + n < tokens.size() && tokens[i + n] == tokens[j + n]) ++n;
                longest = std::max(longest, n);
            }
        return longest;
    };
    gpt::GenerateOptions options = greedy(150);
    options.ignore_eos = true;
    const size_t before = longest_repeat(demo().generate(options, "the the the the the").tokens);
    options.sampler.dry = {.multiplier = 2, .base = 2, .allowed_length = 2, .breakers = {}};
    const size_t after = longest_repeat(demo().generate(options, "the the the the the").tokens);
    EXPECT_LT(after, before);
}

TEST(Generate, StopStringEndsTheText) {
    const gpt::Completion whole = demo().generate(greedy(60), "Once upon a time");
    const size_t at = whole.text.find("the");
    ASSERT_NE(at, std::string::npos);
    gpt::GenerateOptions options = greedy(60);
    options.stop = {"the", "never there"};
    const gpt::Completion cut = demo().generate(options, "Once upon a time");
    EXPECT_EQ(cut.text, whole.text.substr(0, at));
    EXPECT_EQ(cut.finish, gpt::Finish::stop);
    EXPECT_LT(cut.tokens.size(), whole.tokens.size());
}

// What would not fit at the end is refused before the first token, with both figures.
TEST(Generate, APromptThatDoesNotFitIsAnError) {
    gpt::GenerateOptions options = greedy(12);
    options.context = 40;
    gpt::Generator generate(demo().ctx, demo().model, *demo().tokenizer, options);
    const std::vector<int32_t> ids(41, 7);
    // The last token of the answer needs no place.
    EXPECT_EQ(generate.planner().why_too_long(29, 12), "");
    EXPECT_EQ(generate.planner().why_too_long(30, 12),
              "the prompt's 30 tokens and an answer of 12 do not fit the context (got 41 without "
              "the last one, expected at most 40); shorten the prompt or --max-tokens");
    EXPECT_EQ(generate(std::vector<int32_t>(ids.begin(), ids.begin() + 29), options).tokens.size(),
              12u);
    EXPECT_THROW(generate(std::vector<int32_t>(ids.begin(), ids.begin() + 30), options), Error);

    options.max_tokens = 0;
    gpt::Generator any(demo().ctx, demo().model, *demo().tokenizer, options);
    const gpt::Completion last = any(std::vector<int32_t>(ids.begin(), ids.begin() + 40), options);
    EXPECT_EQ(last.tokens.size(), 1u);
    EXPECT_EQ(last.finish, gpt::Finish::context_full);
    EXPECT_EQ(
        any.planner().why_too_long(41, 0),
        "the prompt's 41 tokens do not fit the context (got 41, expected at most 40); shorten "
        "the prompt");
    options.context = 513;
    EXPECT_THROW(gpt::Generator(demo().ctx, demo().model, *demo().tokenizer, options), Error);
    options.context = 40;
    options.max_tokens = 41;  // no prompt fits
    EXPECT_THROW(gpt::Generator(demo().ctx, demo().model, *demo().tokenizer, options), Error);
}

TEST(Generate, FullContextEndsTheText) {
    std::string long_prompt;
    while (demo().tokenizer->encode(long_prompt + " sea").size() <= 508) long_prompt += " sea";
    const gpt::Completion answer = demo().generate(greedy(0), long_prompt);
    const size_t n = demo().tokenizer->encode(long_prompt).size();
    EXPECT_EQ(answer.finish, gpt::Finish::context_full);
    EXPECT_STREQ(gpt::name_of(answer.finish), "length");
    // The last position's logits give one token more than there are positions.
    EXPECT_EQ(answer.tokens.size(), 512 - n + 1);
}

TEST(Generate, TextIsWholeCharactersAtTheEndToo) {
    // Hot draws from all tokens: many are parts of code points.
    gpt::GenerateOptions options;
    options.max_tokens = 100;
    options.sampler = {.temperature = 50, .top_k = 0, .top_p = 1};
    for (int64_t seed = 0; seed < 3; ++seed) {
        options.seed = seed;
        const gpt::Completion answer = demo().generate(options, "x");
        EXPECT_EQ(answer.text, replace_invalid(demo().tokenizer->decode(answer.tokens)));
    }
}

TEST(Generate, RefusesATokenizerLargerThanTheModel) {
    Bpe bpe = Bpe::from_directory(test::source_dir() / "models/gpt-demo");
    bpe.add_special("<|more|>", 4096);
    const Tokenizer larger = Tokenizer::from_bpe(bpe, "larger");
    EXPECT_THROW(gpt::Generator(demo().ctx, demo().model, larger, {}), Error);
}

TEST(Generate, AnInterruptEndsTheText) {
    const InterruptFlag flag;
    gpt::Generator generator(demo().ctx, demo().model, *demo().tokenizer, greedy(20));
    const gpt::Completion answer = generator("Once upon a time", 0, [](std::string_view) {
        if (!interrupted()) std::raise(SIGINT);
    });
    EXPECT_EQ(answer.tokens.size(), 1u);
    EXPECT_EQ(answer.finish, gpt::Finish::stop);
    EXPECT_TRUE(interrupted());
    clear_interrupt();
    EXPECT_FALSE(interrupted());
}

// A prompt that continues the last one and its answer has the answer that it has alone.
TEST(Generate, AnEarlierTextIsNotComputedAgain) {
    gpt::GenerateOptions options = greedy(10);
    gpt::Generator generator(demo().ctx, demo().model, *demo().tokenizer, options);
    const std::vector<int32_t> first = demo().tokenizer->encode("Once upon a time");
    const gpt::Completion before = generator(first, options);
    EXPECT_EQ(before.cached_tokens, 0);
    std::vector<int32_t> second = first;
    second.insert(second.end(), before.tokens.begin(), before.tokens.end());
    for (const int32_t id : demo().tokenizer->encode(" The king")) second.push_back(id);
    const gpt::Completion after = generator(second, options);
    // The last token of an answer is never read.
    EXPECT_EQ(after.cached_tokens, std::ssize(first) + 9);
    gpt::Generator fresh(demo().ctx, demo().model, *demo().tokenizer, greedy(10));
    EXPECT_EQ(after.tokens, fresh(second, greedy(10)).tokens);
    // All of a prompt but its last token may be there.
    EXPECT_EQ(generator(second, options).cached_tokens, std::ssize(second) - 1);
    EXPECT_EQ(generator(first, options).tokens, before.tokens);
}
