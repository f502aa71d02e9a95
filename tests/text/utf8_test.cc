#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>

using namespace hark;

namespace {

const std::string kBad = "\xEF\xBF\xBD";

}  // namespace

// Expected strings are Python's bytes.decode(errors="replace").
TEST(Utf8, ReplacesMaximalSubparts) {
    EXPECT_EQ(replace_invalid(""), "");
    EXPECT_EQ(replace_invalid("plain \xC3\xA9 \xF0\x9F\x98\x80"),
              "plain \xC3\xA9 \xF0\x9F\x98\x80");
    EXPECT_EQ(replace_invalid("\xFF"), kBad);
    EXPECT_EQ(replace_invalid("\xE2\x82("), kBad + "(");
    EXPECT_EQ(replace_invalid("\xF0\x9F\x98"), kBad);
    EXPECT_EQ(replace_invalid("\xC0\xAF"), kBad + kBad);
    EXPECT_EQ(replace_invalid("\xE0\x80\xAF"), kBad + kBad + kBad);
    EXPECT_EQ(replace_invalid("\xED\xA0\x80"), kBad + kBad + kBad);
    EXPECT_EQ(replace_invalid("\xF4\x90\x80\x80"), kBad + kBad + kBad + kBad);
    // The Unicode Standard, table 3-8.
    EXPECT_EQ(replace_invalid("a\xF1\x80\x80\xE1\x80\xC2"
                              "b\x80"
                              "c\x80\xBF"
                              "d"),
              "a" + kBad + kBad + kBad + "b" + kBad + "c" + kBad + kBad + "d");
}

TEST(Utf8, KnowsValidText) {
    EXPECT_TRUE(is_valid_utf8(""));
    EXPECT_TRUE(is_valid_utf8("a\xF4\x8F\xBF\xBF"));
    EXPECT_FALSE(is_valid_utf8("a\xF4\x90\x80\x80"));
    EXPECT_FALSE(is_valid_utf8("cut \xE2\x82"));
}

TEST(Utf8Stream, HoldsBackAnUnfinishedCodePoint) {
    Utf8Stream stream;
    EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
    EXPECT_EQ(stream.push("\x98"), "");
    EXPECT_EQ(stream.push("\x80z"), "\xF0\x9F\x98\x80z");
    EXPECT_EQ(stream.finish(), "");
    EXPECT_EQ(stream.push("\xE2\x82"), "");
    EXPECT_EQ(stream.finish(), kBad);
    EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, CutsMakeNoDifference) {
    std::mt19937 random(7);
    // Bytes that often form, or nearly form, code points.
    const std::string pool = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x80\xBF\xC2\xE0\xED\xF4\xFF";
    for (int round = 0; round < 2000; ++round) {
        std::string bytes;
        for (unsigned i = 0, n = random() % 20; i < n; ++i) bytes += pool[random() % pool.size()];
        Utf8Stream stream;
        std::string pieces;
        for (size_t at = 0; at < bytes.size();) {
            const size_t n = 1 + random() % 3;
            const std::string piece = stream.push(std::string_view(bytes).substr(at, n));
            EXPECT_TRUE(is_valid_utf8(piece));
            pieces += piece;
            at += n;
        }
        pieces += stream.finish();
        EXPECT_EQ(pieces, replace_invalid(bytes));
        EXPECT_TRUE(is_valid_utf8(pieces));
    }
}

TEST(Utf8, CodePointsThereAndBack) {
    std::string text;
    const char32_t points[] = {0x24, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFD, 0x10000, 0x10FFFF};
    for (char32_t point : points) append_code_point(text, point);
    EXPECT_TRUE(is_valid_utf8(text));
    EXPECT_EQ(count_code_points(text), std::size(points));
    size_t at = 0;
    for (char32_t point : points) EXPECT_EQ(next_code_point(text, at), point);
    EXPECT_EQ(at, text.size());
}

TEST(Utf8, TheFirstInvalidByteIsFound) {
    const std::string whole = "12345678 caf\xC3\xA9 \xE4\xB8\x80";
    EXPECT_EQ(first_invalid(whole), std::string::npos);
    EXPECT_EQ(first_invalid(""), std::string::npos);
    EXPECT_EQ(first_invalid(whole + "\xFF"), whole.size());
    EXPECT_EQ(first_invalid(whole + "\xE9t\xE9"), whole.size());
    EXPECT_EQ(first_invalid(whole + "\xE4\xB8"), whole.size());
}
