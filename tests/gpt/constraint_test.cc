// Constraints of answers: what a sampler may choose, and reasoning before them.
#include "gpt/answers/constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpt/answers/constraint_settings.h"
#include "gpt/sampling/sampler.h"
#include "support/error_of.h"
#include "support/expect.h"
#include "support/model_tokenizer.h"

using namespace hark;
using namespace hark::test;
using gpt::ConstraintRequest;
using Kind = gpt::ConstraintRequest::Kind;

namespace {

struct ConstrainedText {
    bool begins = true, complete = false;
};

// What a text with special tokens is under a constraint.
ConstrainedText read_text_under(TokenMasks& masks, const Tokenizer& tokenizer,
                                const std::string& text) {
    const std::vector<int32_t> ids = tokenizer.encode(text, {.parse_specials = true});
    TokenMasks::State state = masks.start();
    for (const int32_t id : ids) {
        const bool allowed = allows(*masks.mask(state, false), id);
        state = masks.next(state, id);
        EXPECT_EQ(allowed, state != GrammarStates::kDead) << text;
    }
    return {state != GrammarStates::kDead, masks.can_end(state)};
}

std::string wrong_line(const std::string& line, std::optional<ConstraintRequest>& request) {
    request.reset();
    return gpt::read_constraint(nlohmann::ordered_json::parse(line), request);
}

}  // namespace

TEST(Constraint, ASamplerChoosesWhatItAllows) {
    const Tokenizer tokenizer = model_tokenizer("smollm3");
    const std::vector<int32_t> ends = tokenizer.special_ids().ends;
    gpt::Constraints constraints(tokenizer, ends, nullptr);
    for (const double temperature : {0.0, 1.0}) {
        gpt::SamplerOptions options{.temperature = temperature, .top_k = 5};
        options.constraint = constraints.masks({Kind::regex, "(yes|no){2}"}, false);
        gpt::Sampler sampler(options);
        for (uint64_t seed = 0; seed < 8; ++seed) {
            sampler.begin(tokenizer.encode("x"), seed);
            std::string text;
            for (int32_t id = -1; text.size() < 20;) {
                // Without a constraint it would be a special token or a space.
                std::vector<float> logits(static_cast<size_t>(tokenizer.vocab_size()), 0.0f);
                logits[0] = 50;
                logits[static_cast<size_t>(tokenizer.encode(" ").at(0))] = 40;
                id = sampler(logits);
                if (std::find(ends.begin(), ends.end(), id) != ends.end()) break;
                text += tokenizer.bytes_of(id);
            }
            EXPECT_TRUE(text == "yesyes" || text == "yesno" || text == "noyes" || text == "nono")
                << text;
        }
    }
}

TEST(Constraint, NoTokenIsFree) {
    const Tokenizer tokenizer = model_tokenizer("smollm3");
    // Without a token that ends the text nothing may follow "a".
    gpt::Constraints constraints(tokenizer, {}, nullptr);
    gpt::SamplerOptions options{.temperature = 0};
    options.constraint = constraints.masks({Kind::regex, "a"}, false);
    gpt::Sampler sampler(options);
    sampler.begin(tokenizer.encode("x"), 0);
    std::vector<float> logits(static_cast<size_t>(tokenizer.vocab_size()), 0.0f);
    EXPECT_EQ(tokenizer.bytes_of(sampler(logits)), "a");
    expect_contains(error_of([&] { sampler(logits); }), "no token of the model continues the text");
    // Nor is one if the model excludes all that may follow.
    sampler.begin(tokenizer.encode("x"), 0);
    std::fill(logits.begin(), logits.end(), -std::numeric_limits<float>::infinity());
    logits[0] = 1;
    expect_contains(error_of([&] { sampler(logits); }), "gives no token of the constraint");
}

TEST(Constraint, KeepsTheAllowedLogitsOfAnyRow) {
    for (const size_t n : {1u, 63u, 64u, 65u, 200u}) {
        TokenMask mask((n + 63) / 64, 0);
        for (size_t i = 0; i < n; i += 3) mask[i / 64] |= uint64_t{1} << (i % 64);
        if (n == 200) mask[1] = 0, mask[2] = ~uint64_t{0};
        std::vector<float> logits(n);
        for (size_t i = 0; i < n; ++i) logits[i] = static_cast<float>(i) - 2.5f;
        gpt::keep_allowed(logits, mask);
        for (size_t i = 0; i < n; ++i) {
            if (allows(mask, static_cast<int32_t>(i)))
                EXPECT_EQ(logits[i], static_cast<float>(i) - 2.5f) << i << " of " << n;
            else
                EXPECT_EQ(logits[i], -std::numeric_limits<float>::infinity()) << i << " of " << n;
        }
    }
    std::vector<float> logits(10, 1.0f);
    expect_contains(error_of([&] { gpt::keep_allowed(logits, TokenMask(1, 1u << 10)); }),
                    "no token of the model continues the text");
}

TEST(Constraint, BeginsAfterTheReasoning) {
    const Tokenizer tokenizer = model_tokenizer("smollm3");
    const gpt::ReasoningMarkers tags{gpt::ReasoningMarkers::Form::tags, "<think>", "</think>"};
    gpt::Constraints constraints(tokenizer, tokenizer.special_ids().ends, &tags);
    const auto closed = constraints.masks({Kind::regex, "[0-9]+"}, false);
    const auto opened = constraints.masks({Kind::regex, "[0-9]+"}, true);
    EXPECT_EQ(closed, constraints.masks({Kind::regex, "[0-9]+"}, false));
    EXPECT_EQ(constraints.masks({}, false), nullptr);
    const auto reads = [&](TokenMasks& masks, const std::string& text) {
        return read_text_under(masks, tokenizer, text);
    };
    for (const char* text : {"12", "<think>a < b</</think>\n\n12", "<think></think>1"}) {
        EXPECT_TRUE(reads(*closed, text).complete) << text;
        EXPECT_FALSE(reads(*opened, text).complete && text[0] != '<') << text;
    }
    for (const char* text : {"a < b</think>12", "</think>\n1", "12 a</think>7"})
        EXPECT_TRUE(reads(*opened, text).complete) << text;
    for (const char* text : {"a", "<think>a</think>b", "<think>a</think>\n\n\n1", "12<think>"})
        EXPECT_FALSE(reads(*closed, text).begins) << text;
    for (const char* text : {"<think>12", "12"}) {
        EXPECT_TRUE(reads(*opened, text).begins) << text;
        EXPECT_FALSE(reads(*opened, text).complete) << text;
    }
}

TEST(Constraint, BeginsInTheFinalChannel) {
    const Tokenizer tokenizer = model_tokenizer("gpt_oss");
    const gpt::ReasoningMarkers channels{gpt::ReasoningMarkers::Form::channels,
                                         "<|channel|>analysis<|message|>", "<|end|>"};
    gpt::Constraints constraints(tokenizer, {tokenizer.id_of("<|return|>").value()}, &channels);
    const auto masks = constraints.masks({Kind::json_object, ""}, false);
    const std::string answer = "<|channel|>final<|message|>{}";
    const std::string analysis =
        "<|channel|>analysis<|message|>So {\"a\".<|end|>"
        "<|start|>assistant";
    for (const std::string& text : {answer, analysis + answer, answer + "<|return|>"})
        EXPECT_TRUE(read_text_under(*masks, tokenizer, text).complete) << text;
    for (const std::string& text : {std::string("{}"), analysis + "{}", answer + "<|end|>",
                                    std::string("<|channel|>commentary")})
        EXPECT_FALSE(read_text_under(*masks, tokenizer, text).begins) << text;
}

TEST(Constraint, ALineHasItInOneOfThreeFields) {
    std::optional<ConstraintRequest> request;
    EXPECT_EQ(wrong_line(R"({"prompt": "x", "regex": null, "response_format": null})", request),
              "");
    EXPECT_FALSE(request);
    EXPECT_EQ(wrong_line(R"({"response_format": {"type": "text"}})", request), "");
    EXPECT_EQ(request->kind, Kind::none);
    EXPECT_EQ(wrong_line(R"({"response_format": {"type": "json_object"}})", request), "");
    EXPECT_EQ(request->kind, Kind::json_object);
    EXPECT_EQ(wrong_line(R"({"response_format": {"type": "json_schema", "json_schema": {"name": "n",
                             "strict": true, "schema": {"type": "null"}}}})",
                         request),
              "");
    EXPECT_EQ(request->kind, Kind::schema);
    EXPECT_EQ(request->text, R"({"type":"null"})");
    EXPECT_EQ(wrong_line(R"({"regex": "a+"})", request), "");
    EXPECT_EQ(request->kind, Kind::regex);
    EXPECT_EQ(wrong_line(R"({"grammar": "root ::= \"a\""})", request), "");
    EXPECT_EQ(request->kind, Kind::grammar);
    for (const auto& [line, why] : std::vector<std::pair<const char*, const char*>>{
             {R"({"response_format": "json"})", "expected an object with type text"},
             {R"({"response_format": {"type": "xml"}})", "expected an object with type text"},
             {R"({"response_format": {"type": "json_schema"}})", "expected json_schema"},
             {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": 1}}})",
              "expected json_schema"},
             {R"({"regex": 1})", "regex: expected a text that is not empty"},
             {R"({"grammar": ""})", "grammar: expected a text that is not empty"},
             {R"({"regex": "a", "grammar": "b"})", "exclude one another"},
             {R"({"regex": "a", "response_format": {"type": "json_object"}})",
              "exclude one another"}})
        expect_contains(wrong_line(line, request), why);
}
