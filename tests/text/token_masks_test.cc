// Masks of tokens, against each token tried alone.
#include "text/constrain/token_masks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/error_of.h"
#include "support/model_tokenizer.h"
#include "text/constrain/gbnf.h"
#include "text/constrain/json_grammar.h"
#include "text/constrain/json_schema.h"

using namespace hark;
using namespace hark::test;

namespace {

std::shared_ptr<const Tokenizer> tokenizer_named(const std::string& name) {
    return std::make_shared<const Tokenizer>(model_tokenizer(name));
}

// Walks through random texts of a grammar, and compares the mask of each state with every token
// tried alone.
void expect_exact_masks(const Grammar& grammar, const Tokenizer& tokenizer, uint32_t seed,
                        int tokens = 60) {
    const std::vector<int32_t> ends = tokenizer.special_ids().ends;
    TokenMasks masks(grammar, std::make_shared<TokenTrie>(tokenizer), ends);
    GrammarAutomaton automaton(grammar);
    GrammarStates states(automaton);
    std::mt19937 random(seed);
    TokenMasks::State state = masks.start();
    GrammarStates::State alone = states.start();
    const auto after = [&](int32_t token) {
        GrammarStates::State to = alone;
        for (const char c : tokenizer.bytes_of(token))
            to = states.next(to, static_cast<unsigned char>(c));
        return to;
    };
    for (int i = 0; i < tokens; ++i) {
        const auto mask = masks.mask(state, false);
        std::vector<int32_t> allowed;
        for (int32_t token = 0; token < tokenizer.vocab_size(); ++token) {
            bool fits = false;
            if (std::find(ends.begin(), ends.end(), token) != ends.end())
                fits = states.can_end(alone);
            else if (tokenizer.has(token) && !tokenizer.is_special(token) &&
                     !tokenizer.bytes_of(token).empty())
                fits = after(token) != GrammarStates::kDead;
            ASSERT_EQ(allows(*mask, token), fits) << tokenizer.token(token) << " at " << i;
            const bool ends_here = std::find(ends.begin(), ends.end(), token) != ends.end();
            if (fits && !ends_here) allowed.push_back(token);
        }
        if (allowed.empty()) return;
        const int32_t token = allowed[random() % allowed.size()];
        state = masks.next(state, token);
        alone = after(token);
        ASSERT_EQ(masks.can_end(state), states.can_end(alone));
        ASSERT_NE(state, GrammarStates::kDead);
    }
}

const char* const kSchema = R"({"type": "object", "required": ["name", "list"], "properties": {
    "name": {"type": "string", "minLength": 3, "maxLength": 60},
    "list": {"type": "array", "minItems": 1, "maxItems": 12, "items": {"anyOf": [
        {"type": "number", "minimum": -3, "maximum": 1.5}, {"$ref": "#"}, {"enum": ["a", "ab"]}]}},
    "word": {"type": "string", "pattern": "^[a-z]{2,90}$"}},
    "additionalProperties": {"type": ["string", "null"]}})";

}  // namespace

TEST(TokenMasks, AreThoseOfEachTokenAlone) {
    for (const char* name : {"smollm3", "llama2", "gemma", "tekken"}) {
        const auto tokenizer = tokenizer_named(name);
        for (uint32_t seed = 0; seed < 4; ++seed) {
            expect_exact_masks(json_grammar(true), *tokenizer, seed);
            expect_exact_masks(schema_grammar(nlohmann::ordered_json::parse(kSchema)), *tokenizer,
                               seed, 150);
            expect_exact_masks(parse_gbnf("root ::= \"(\" root \")\" root | [a-z]* | number\n"
                                          "number ::= [0-9]{1,80} | \"0x\" hex+\n"
                                          "hex ::= [0-9a-f] | \"_\"\n"),
                               *tokenizer, seed);
            expect_exact_masks(parse_gbnf("root ::= \"a\" root \"a\" | . root . | \"\""),
                               *tokenizer, seed, 12);
        }
    }
}

TEST(TokenMasks, TextsWithMoreThanOneGrammarAreAllOfThem) {
    const auto tokenizer = tokenizer_named("smollm3");
    for (uint32_t seed = 0; seed < 4; ++seed)
        expect_exact_masks(parse_gbnf("root ::= a | b\na ::= \"x\" a \"y\" | [x-z]{40,50}\n"
                                      "b ::= \"x\" b \"z\" | [x-z]{0,90} \"!\""),
                           *tokenizer, seed);
}

TEST(TokenMasks, TheEndIsAllowedWhereTheTextMayEnd) {
    const auto tokenizer = tokenizer_named("smollm3");
    const int32_t end = tokenizer->special_ids().ends.at(0);
    TokenMasks masks(parse_gbnf("root ::= \"a\" \"b\"?"), std::make_shared<TokenTrie>(*tokenizer),
                     {end, -1, tokenizer->vocab_size() + 5});
    TokenMasks::State state = masks.start();
    EXPECT_FALSE(allows(*masks.mask(state, false), end));
    EXPECT_EQ(masks.next(state, end), GrammarStates::kDead);
    state = masks.next(state, tokenizer->encode("a").at(0));
    EXPECT_TRUE(allows(*masks.mask(state, false), end));
    EXPECT_TRUE(masks.can_end(state));
    EXPECT_FALSE(masks.is_final(state));
    EXPECT_EQ(masks.next(state, end), state);
    state = masks.next(state, tokenizer->encode("b").at(0));
    EXPECT_TRUE(masks.is_final(state));
    const TokenMask last = *masks.mask(state, false);
    EXPECT_TRUE(allows(last, end));
    for (int32_t token = 0; token < tokenizer->vocab_size(); ++token)
        EXPECT_EQ(allows(last, token), token == end) << token;
    EXPECT_FALSE(allows(last, -1));
    EXPECT_FALSE(allows(last, tokenizer->vocab_size() + 64));
}

TEST(TokenMasks, SpecialTokensAreSymbolsOfTheirOwn) {
    const auto tokenizer = tokenizer_named("smollm3");
    const int32_t special = tokenizer->id_of("<|im_start|>").value();
    ASSERT_TRUE(tokenizer->is_special(special));
    const auto trie = std::make_shared<TokenTrie>(*tokenizer, std::span(&special, 1));
    Grammar grammar;
    const Grammar::Rule root = grammar.add_rule("root");
    grammar.define(root, grammar.sequence({grammar.repeat(grammar.range(0, 255), 0, kUnlimited),
                                           grammar.special(0), grammar.text("a")}));
    grammar.set_root(root);
    TokenMasks masks(grammar, trie, {});
    EXPECT_TRUE(allows(*masks.mask(masks.start(), false), special));
    // Its text is not the token.
    TokenMasks::State state = masks.start();
    for (const int32_t id : tokenizer->encode("<|im_start|>a")) state = masks.next(state, id);
    EXPECT_FALSE(masks.can_end(state));
    state = masks.next(masks.next(state, special), tokenizer->encode("a").at(0));
    EXPECT_TRUE(masks.is_final(state));
    // Without a symbol it is in no text.
    TokenMasks other(parse_gbnf("root ::= .*"), std::make_shared<TokenTrie>(*tokenizer), {});
    EXPECT_FALSE(allows(*other.mask(other.start(), false), special));
}

TEST(TokenMasks, AFirstTokenKeepsItsSpaces) {
    // llama2's decoder takes a space off a text's beginning.
    const auto tokenizer = tokenizer_named("llama2");
    const TokenTrie trie(*tokenizer);
    ASSERT_FALSE(trie.cut_at_beginning().empty());
    TokenMasks masks(parse_gbnf("root ::= .*"), std::make_shared<TokenTrie>(*tokenizer), {});
    const auto first = masks.mask(masks.start(), true), later = masks.mask(masks.start(), false);
    for (const int32_t token : trie.cut_at_beginning()) {
        EXPECT_FALSE(allows(*first, token));
        EXPECT_TRUE(allows(*later, token));
    }
    EXPECT_TRUE(TokenTrie(*tokenizer_named("smollm3")).cut_at_beginning().empty());
}

TEST(TokenMasks, AreMadeAheadByAThread) {
    const auto tokenizer = tokenizer_named("smollm3");
    TokenMasks masks(json_grammar(false), std::make_shared<TokenTrie>(*tokenizer), {});
    TokenMasks plain(json_grammar(false), std::make_shared<TokenTrie>(*tokenizer), {});
    TokenMasks::State state = masks.start(), other = plain.start();
    for (const int32_t token : tokenizer->encode("{\"a\": [1, {\"b\": \"c\"}]}")) {
        masks.prepare(state);
        EXPECT_EQ(*masks.mask(state, false), *plain.mask(other, false));
        state = masks.next(state, token);
        other = plain.next(other, token);
    }
    masks.prepare(state);  // and ends with the masks
}
