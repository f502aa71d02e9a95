// GBNF: the texts of grammars, and what is refused by name.
#include "text/constrain/gbnf.h"

#include <gtest/gtest.h>

#include "support/error_of.h"
#include "support/expect.h"
#include "support/grammar_texts.h"

using namespace hark;
using namespace hark::test;

namespace {

void expect_texts(const char* grammar, const std::vector<std::string>& texts,
                  const std::vector<std::string>& others) {
    GrammarTexts reader(parse_gbnf(grammar));
    for (const std::string& text : texts) EXPECT_TRUE(reader.has(text)) << grammar << ": " << text;
    for (const std::string& text : others)
        EXPECT_FALSE(reader.has(text)) << grammar << ": " << text;
}

}  // namespace

TEST(Gbnf, ReadsEveryForm) {
    expect_texts("root ::= \"a\"", {"a"}, {"", "b", "aa"});
    expect_texts("root ::= \"ab\" \"c\" | \"d\" |", {"abc", "d", ""}, {"ab", "abcd"});
    expect_texts("root ::= [a-c] [^a-c] [-x] [x\\]]", {"adx]", "cz-x"}, {"aax]", "adxy"});
    expect_texts("root ::= .", {"a", "\n", "\xE2\x82\xAC"}, {"", "\xE2\x82", "\xFF"});
    expect_texts("root ::= \"a\"* \"b\"+ \"c\"? \"d\"{2} \"e\"{1,} \"f\"{0,2}",
                 {"bdde", "aabbcddeeff"}, {"dde", "bde", "bddefff"});
    expect_texts("root ::= (\"a\" |\n  \"b\" # one\n | \"c\")+\n", {"abc", "c"}, {"", "d"});
    expect_texts(
        "# a comment\nroot ::= # here too\n  item more*\nmore ::= \", \" item\n"
        "item ::= [0-9]{1,2}\n",
        {"1", "12, 3, 45"}, {"1,", "123", "1, "});
    expect_texts("root ::= \"\\n\\r\\t\\\\\\\"\\x41\\u00e9\\U0001F600\"",
                 {"\n\r\t\\\"A\xC3\xA9\xF0\x9F\x98\x80"}, {"n"});
    expect_texts("root ::= \"\xC3\xA9\" [\xC3\xA0-\xC3\xBF]", {"\xC3\xA9\xC3\xA9"}, {"\xC3\xA9"});
    expect_texts("root ::= a-1 a_2\r\na-1 ::= \"x\"\r\na_2 ::= \"y\"", {"xy"}, {"x"});
}

TEST(Gbnf, RulesMayBeRecursive) {
    expect_texts("root ::= \"(\" root \")\" root | \"\"", {"", "()", "(())()", "()(()())"},
                 {"(", ")", "(()", "())"});
    expect_texts(
        "root ::= list\nlist ::= item | item \",\" list\nitem ::= [a-z] | \"[\" list \"]\"",
        {"a", "a,b", "[a,[b,c]],d"}, {"a,", "[a", "[]"});
    // Palindromes are ambiguous: the middle may be anywhere.
    expect_texts("root ::= \"a\" root \"a\" | \"b\" root \"b\" | [ab]?", {"", "a", "abba", "babab"},
                 {"ab", "abab"});
    // Each call returns where it was made, however deep.
    expect_texts(
        "root ::= \"a\" root \"x\" | \"a\" other \"y\" | \"c\"\n"
        "other ::= \"a\" other \"x\" | \"a\" root \"y\" | \"c\"",
        {"aacxx", "aacyy", "aacxy"}, {"aacx", "aacxyx"});
}

TEST(Gbnf, LongTextsOfAnAmbiguousGrammarHaveFewStates) {
    GrammarTexts reader(
        parse_gbnf("root ::= \"a\" root \"x\" | \"a\" other \"y\" | \"c\"\n"
                   "other ::= \"a\" other \"x\" | \"a\" root \"y\" | \"c\""));
    const std::string depth(200, 'a');
    EXPECT_TRUE(reader.has(depth + "c" + std::string(100, 'x') + std::string(100, 'y')));
    EXPECT_FALSE(reader.has(depth + "c" + std::string(199, 'x')));
    EXPECT_LE(reader.states().heads(reader.after(depth)).size(), 2u);
    // A call in the last place does not make the stack deeper.
    GrammarTexts list(parse_gbnf("root ::= [a-z] | [a-z] \",\" root"));
    std::string text = "a";
    for (int i = 0; i < 2000; ++i) text += ",b";
    EXPECT_TRUE(list.has(text));
    GrammarTexts nested(parse_gbnf("root ::= \"(\" root \")\" | \"x\""));
    EXPECT_TRUE(nested.begins(std::string(512, '(') + "x"));
    EXPECT_FALSE(nested.begins(std::string(1000, '(')));
}

TEST(Gbnf, RefusesByName) {
    for (const auto& [grammar, why] : std::vector<std::pair<const char*, const char*>>{
             {"", "there is no rule root"},
             {"a ::= \"x\"", "there is no rule root"},
             {"root ::= b\n", "line 1: the rule b has no definition"},
             {"root ::= \"a\"\nroot ::= \"b\"", "line 2: the rule root is defined twice"},
             {"root = \"a\"", "expected ::= after root"},
             {"root ::= \"a", "a text without its closing"},
             {"root ::= [a", "'[' without ']'"},
             {"root ::= (\"a\"", "'(' without ')'"},
             {"root ::= \"a\")", "unexpected ')' in the rule root"},
             {"root ::= \"a\"{2,1}", "out of order"},
             {"root ::= \"a\"{x}", "expected {m}, {m,} or {m,n}"},
             {"root ::= \"a\"{20000}", "a count above 10000"},
             {"root ::= [z-a]", "a range that is out of order"},
             {"root ::= \"\\q\"", "the escape \\q is unknown"},
             {"root ::= \"\\xZZ\"", "expected 2 hexadecimal digits"},
             {"root ::= \"\\ud800\"", "the number of a code point"},
             {"\n\n::= \"a\"", "line 3: expected a rule's name"}})
        expect_contains(error_of([&] { parse_gbnf(grammar); }), why);
    expect_contains(error_of([] { parse_gbnf("root ::= " + std::string(200, '(')); }),
                    "nested deeper than 100");
}

TEST(Gbnf, LeftRecursionIsRefusedWithTheRulesName) {
    for (const auto& [grammar, rule] : std::vector<std::pair<const char*, const char*>>{
             {"root ::= root \"a\" | \"b\"", "the rule root refers to itself before any text"},
             {"root ::= \"x\" list\nlist ::= list \",\" item | item\nitem ::= \"i\"",
              "the rule list refers to itself"},
             {"root ::= \"x\" a\na ::= empty b\nb ::= a | \"c\"\nempty ::= \"\" | \" \"",
              "refers to itself before any text (left recursion)"}})
        expect_contains(error_of([&] { GrammarAutomaton{parse_gbnf(grammar)}; }), rule);
    EXPECT_EQ(error_of([] { GrammarAutomaton{parse_gbnf("root ::= \"a\" root | \"b\"")}; }),
              "none");
}

TEST(Gbnf, AGrammarWithoutTextsIsRefused) {
    expect_contains(error_of([] { GrammarAutomaton{parse_gbnf("root ::= \"a\" root")}; }),
                    "no text fits the constraint");
    // A branch that never ends is not begun.
    GrammarTexts reader(parse_gbnf("root ::= \"x\" | \"y\" endless\nendless ::= \"z\" endless"));
    EXPECT_TRUE(reader.has("x"));
    EXPECT_FALSE(reader.begins("y"));
}
