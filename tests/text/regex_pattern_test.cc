// Regular expressions: the texts that they match, and what is refused by name.
#include "text/constrain/regex_pattern.h"

#include <gtest/gtest.h>

#include <chrono>

#include "support/error_of.h"
#include "support/expect.h"
#include "text/unicode.h"

using namespace hark;
using namespace hark::test;

namespace {

struct RegexCase {
    const char* pattern;
    std::vector<const char*> matching, others;
};

void expect_cases(const std::vector<RegexCase>& cases, CharAutomaton (*read)(std::string_view)) {
    for (const RegexCase& one : cases) {
        const CharAutomaton automaton = read(one.pattern);
        const CharAutomaton other = complement(automaton);
        for (const char* text : one.matching) {
            EXPECT_TRUE(automaton.matches(to_code_points(text))) << one.pattern << ": " << text;
            EXPECT_FALSE(other.matches(to_code_points(text))) << one.pattern << ": " << text;
        }
        for (const char* text : one.others) {
            EXPECT_FALSE(automaton.matches(to_code_points(text))) << one.pattern << ": " << text;
            EXPECT_TRUE(other.matches(to_code_points(text))) << one.pattern << ": " << text;
        }
    }
}

}  // namespace

TEST(RegexPattern, MatchesWholeTexts) {
    expect_cases({{"abc", {"abc"}, {"ab", "abcd", ""}},
                  {"", {""}, {"a"}},
                  {"a|bc|", {"a", "bc", ""}, {"abc"}},
                  {"(a|b)*c", {"c", "abbac"}, {"ab", "cc"}},
                  {"(?:ab)+?", {"ab", "abab"}, {"", "aba"}},
                  {"(?<name>a)(?P<other>b)", {"ab"}, {"a"}},
                  {"a{2}b{1,2}c{2,}", {"aabcc", "aabbcccc"}, {"abcc", "aabbbcc", "aabc"}},
                  {"a{0}b?", {"", "b"}, {"a", "ab"}},
                  {"[a-cx-]+", {"abcx-", "-"}, {"d", ""}},
                  {"[^a-c]", {"d", "\xC3\xA9", "\n"}, {"a", "dd"}},
                  {"[^]", {"a"}, {""}},
                  {"[]", {}, {"", "a"}},
                  {"[\\]\\\\^]*", {"]\\^"}, {"["}},
                  {"[\\d\\-x]", {"5", "-", "x"}, {"e"}},
                  {".", {"a", "\xF0\x9F\x98\x80"}, {"\n", "\r", "\xE2\x80\xA8", ""}},
                  {"\\d\\D\\w\\W\\s\\S", {"1a_- x"}, {"11_- x"}},
                  {"\\t\\n\\r\\f\\v\\0", {}, {"tnrfv0"}},
                  {"\\x41\\u00e9\\u{1F600}\\uD83D\\uDE00",
                   {"A\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80"},
                   {"A"}},
                  {"\\p{L}+\\P{L}", {"\xC3\xA9z1"}, {"1", "zz"}},
                  {"\\.\\/\\-\\$", {"./-$"}, {"a/-$"}},
                  {"\\cJ", {"\n"}, {"J"}},
                  {"[\\b]", {"\b"}, {"b"}},
                  {"^a$", {"a"}, {"aa"}},
                  {"^^(a|^b)$", {"a", "b"}, {"ab"}},
                  {"a^b", {}, {"ab", "a^b"}},
                  {"a$b|c", {"c"}, {"ab"}}},
                 whole_match);
}

TEST(RegexPattern, MatchesAnywhereAsSchemasDo) {
    expect_cases({{"b", {"b", "abc"}, {"", "ac"}},
                  {"^a", {"a", "abc"}, {"ba"}},
                  {"a$", {"a", "ba"}, {"ab"}},
                  {"^$", {""}, {"a"}},
                  {"^a|b$", {"ax", "xb", "ab"}, {"xa", "bx"}},
                  {"^[0-9]{2}$", {"42"}, {"421", "4"}},
                  {"(^|,)x(,|$)", {"x", "a,x", "x,b", "a,x,b"}, {"ax", "xb"}}},
                 any_match);
}

TEST(RegexPattern, RefusesByName) {
    for (const auto& [pattern, why] : std::vector<std::pair<const char*, const char*>>{
             {"(a)\\1", "back references are not supported (at character 6 of '(a)\\1')"},
             {"\\k<n>", "back references are not supported"},
             {"a(?=b)", "lookahead is not supported"},
             {"a(?!b)", "lookahead is not supported"},
             {"(?<=a)b", "lookbehind is not supported"},
             {"(?<!a)b", "lookbehind is not supported"},
             {"(?i)a", "flags and other (?...) groups are not supported"},
             {"(?>a)", "flags and other (?...) groups are not supported"},
             {"\\bword", "word boundaries (\\b, \\B) are not supported"},
             {"a++", "possessive quantifiers are not supported"},
             {"\\p{Greek}", "only \\p{L}"},
             {"(a", "'(' without ')'"},
             {"a)", "')' without '('"},
             {"[a", "'[' without ']'"},
             {"a]", "']' without its begin"},
             {"*a", "nothing to repeat"},
             {"^*", "nothing to repeat"},
             {"a**", "a quantifier after a quantifier"},
             {"a{2,1}", "a quantifier's counts are out of order"},
             {"a{x}", "expected {m}, {m,} or {m,n}"},
             {"a{99999}", "a count above 10000"},
             {"[z-a]", "a range that is out of order"},
             {"[\\d-\\w]", "a range of classes"},
             {"\\q", "the escape \\q is unknown"},
             {"\\", "a backslash at the end"},
             {"\\ud800", "half of a surrogate pair"},
             {"\\xg0", "expected 2 hexadecimal digits"},
             {"((a{1000}){1000})", "too large"}})
        expect_contains(error_of([&] { whole_match(pattern); }), why);
    expect_contains(error_of([] { parse_regex(std::string(200, '(')); }), "nested deeper than 100");
    EXPECT_EQ(error_of([] { parse_regex(std::string(65537, 'a')); }),
              "regular expression: too long (got 65537 bytes, expected at most 65536)");
}

// The categories of all code points are looked up once, not for each \p.
TEST(RegexPattern, ManyCategoriesTakeNoTime) {
    std::string pattern;
    for (int i = 0; i < 8000; ++i) pattern += i % 2 ? "\\p{L}" : "\\P{N}";
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(parse_regex(pattern).parts().size(), 8000u);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    EXPECT_LT(took.count(), 10);
}

TEST(RegexPattern, AutomataAreCombined) {
    const CharAutomaton words = whole_match("[a-z]+"), short_ones = whole_match(".{0,3}");
    const CharAutomaton both = intersection(words, short_ones);
    EXPECT_TRUE(both.matches(U"abc"));
    EXPECT_FALSE(both.matches(U"abcd"));
    EXPECT_FALSE(both.matches(U"a1"));
    EXPECT_FALSE(both.empty());
    EXPECT_TRUE(intersection(both, whole_match("[0-9]*")).empty());
    EXPECT_TRUE(intersection(words, complement(words)).empty());
    const CharAutomaton one = determinized(whole_match("(a|ab)(c|bcd)*"));
    for (const auto& [text, matches] : std::vector<std::pair<const char32_t*, bool>>{
             {U"a", true}, {U"abcd", true}, {U"abc", true}, {U"abbcdc", true}, {U"b", false}})
        EXPECT_EQ(one.matches(text), matches);
}
