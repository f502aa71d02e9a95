// Widths and graphemes, as tables.
#include "text/unicode.h"

#include <gtest/gtest.h>

namespace hark {
namespace {

using Texts = std::vector<std::string_view>;

TEST(DisplayWidth, OfTextsOfManyScripts) {
    const std::vector<std::pair<std::string, int>> table = {
        {"", 0},
        {"a house", 7},
        {"Äpfel, “naïf”… – ¿qué?", 22},
        {"e\u0301te\u0301", 3},     // marks of their own
        {"我的家", 6},              // wide
        {"ｶﾅ", 2},                  // half-width
        {"ＡＢ", 4},                // full-width
        {"한국", 4},                // syllables
        {"\u1112\u1161\u11ab", 2},  // the first of them in three letters
        {"שלום", 4},                // right to left
        {"سَلَام", 4},                // with vowel marks
        {"ที่นี่", 2},                  // Thai, two marks on each
        {"😀", 2},                   //
        {"👨\u200d👩\u200d👧", 2},     // a family, joined
        {"👍🏽", 2},            // with a skin colour
        {"🇩🇪🇫🇷", 4},                // two flags
        {"❤", 1},                   //
        {"❤\ufe0f", 2},             // as a picture
        {"1\ufe0f\u20e3", 2},       // a key
        {"\ufffd", 1},              //
        {"a\tb", 2},                // control characters take no room
    };
    for (const auto& [text, width] : table) EXPECT_EQ(display_width(text), width) << text;
}

TEST(GraphemeClusters, LaidEndToEndAreTheText) {
    EXPECT_EQ(grapheme_clusters("ae\u0301我"), (Texts{"a", "e\u0301", "我"}));
    EXPECT_EQ(grapheme_clusters("👨\u200d👩\u200d👧👍🏽"),
              (Texts{"👨\u200d👩\u200d👧", "👍🏽"}));
    EXPECT_EQ(grapheme_clusters("🇩🇪🇫🇷"), (Texts{"🇩🇪", "🇫🇷"}));
    EXPECT_EQ(grapheme_clusters("\u0301"), Texts{"\u0301"});
    EXPECT_EQ(grapheme_clusters(""), Texts{});
}

}  // namespace
}  // namespace hark
