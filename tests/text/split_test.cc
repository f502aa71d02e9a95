// The hand-written matcher of GPT-2's pattern against PCRE2's, and where a text may be cut.
#include "text/split.h"

#include <gtest/gtest.h>

#include <random>

#include "text/bpe.h"
#include "text/regex.h"
#include "text/utf8.h"

using namespace hark;

namespace {

#define SPACES                                                                         \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
    "\\x{202f}\\x{205f}\\x{3000}"

std::vector<std::string> words_by_pcre2(const std::string& text) {
    static const Regex kPattern("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACES
                                "\\p{L}\\p{N}]+|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+");
    std::vector<std::string> words;
    kPattern.replace(text, [&](const Regex::Groups& groups) {
        words.emplace_back(groups[0]);
        return std::string();
    });
    return words;
}

std::vector<std::string> words_of_text(std::string_view text) {
    const auto views = split_words(text);
    return {views.begin(), views.end()};
}

// Code points of every kind, the awkward ones often.
std::string random_text(std::mt19937& random, int length) {
    static const char32_t kPieces[] = {
        ' ',   ' ',    ' ',    '\n',  '\t',   '\r',   '\'',   '\'',    's',    't',  'r',  'e',
        'l',   'v',    'm',    'd',   'S',    'x',    '1',    '-',     '"',    0x85, 0xA0, 0xE9,
        0x301, 0x3000, 0x4E00, 0x660, 0x2009, 0x180E, 0x200B, 0x1F600, 0xFFFD, 0xBD};
    std::string text;
    for (int i = 0; i < length; ++i) {
        char32_t point = kPieces[random() % std::size(kPieces)];
        if (random() % 16 == 0) point = random() % 0x110000;
        if (point < 0xD800 || point > 0xDFFF) append_code_point(text, point);
    }
    return text;
}

}  // namespace

TEST(Split, EqualsPcre2OnRandomText) {
    std::mt19937 random(7);
    for (int i = 0; i < 30'000; ++i) {
        const std::string text = random_text(random, static_cast<int>(random() % 24));
        ASSERT_EQ(words_of_text(text), words_by_pcre2(text)) << text;
    }
}

TEST(Split, EveryCodePointHasPcre2sClass) {
    std::string text;
    for (char32_t point = 0; point <= 0x10FFFF; ++point) {
        if (point >= 0xD800 && point <= 0xDFFF) continue;
        append_code_point(text, point);
        text += "a1-";  // so that a word ends at every change of class
    }
    EXPECT_EQ(words_of_text(text), words_by_pcre2(text));
}

TEST(Split, CutTextsHaveTheWholesWords) {
    std::mt19937 random(11);
    int cuts = 0;
    for (int i = 0; i < 30'000; ++i) {
        const std::string text = random_text(random, 24);
        const size_t seen = random() % (text.size() + 1);  // may end inside a code point
        const size_t cut = last_word_cut(std::string_view(text).substr(0, seen));
        ASSERT_LE(cut, seen);
        if (cut == 0) continue;
        ++cuts;
        std::vector<std::string> words = words_of_text(text.substr(0, cut));
        for (const std::string& word : words_of_text(text.substr(cut))) words.push_back(word);
        ASSERT_EQ(words, words_of_text(text)) << text << " cut at " << cut;
    }
    EXPECT_GT(cuts, 20'000);
}

TEST(Split, BrokenUtf8IsCutWhereItsReplacementWouldBe) {
    std::mt19937 random(13);
    int cuts = 0;
    for (int i = 0; i < 30'000; ++i) {
        std::string text = random_text(random, 24);
        for (int k = 0; k < 3 && !text.empty(); ++k)
            text[random() % text.size()] = static_cast<char>(random());
        const size_t cut = last_word_cut(text);
        if (cut == 0) continue;
        ++cuts;
        std::vector<std::string> words = words_of_text(replace_invalid(text.substr(0, cut)));
        for (const std::string& word : words_of_text(replace_invalid(text.substr(cut))))
            words.push_back(word);
        ASSERT_EQ(words, words_of_text(replace_invalid(text))) << text << " cut at " << cut;
    }
    EXPECT_GT(cuts, 20'000);
}

TEST(Split, RunsWithoutAnEndAreNotCut) {
    EXPECT_EQ(last_word_cut(""), 0u);
    EXPECT_EQ(last_word_cut("aaaa"), 0u);
    EXPECT_EQ(last_word_cut("    x"), 0u);
    EXPECT_EQ(last_word_cut("'re"), 0u);
    EXPECT_EQ(last_word_cut("one two"), 3u);
    EXPECT_EQ(last_word_cut("one  "), 3u);
    EXPECT_EQ(last_word_cut("\xE4\xB8\x80\xE3\x80\x82\xE4"), 3u);
}
