// Texts of numbers within bounds, against the numbers that they are.
#include "text/constrain/json_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "support/error_of.h"
#include "support/expect.h"

using namespace hark;
using namespace hark::test;

namespace {

bool matches(const CharAutomaton& automaton, const std::string& text) {
    return automaton.matches(std::u32string(text.begin(), text.end()));
}

NumberRange range_of(std::optional<double> least, bool above, std::optional<double> most,
                     bool below, std::optional<double> multiple = {}) {
    NumberRange range;
    const auto value = [](double x) {
        return x == std::floor(x) ? nlohmann::ordered_json(static_cast<int64_t>(x))
                                  : nlohmann::ordered_json(x);
    };
    if (least) range.least.push_back({value(*least), above});
    if (most) range.most.push_back({value(*most), below});
    if (multiple) range.multiple_of.push_back(value(*multiple));
    return range;
}

}  // namespace

TEST(JsonNumber, IntegersAreThoseWithinTheBounds) {
    const std::vector<double> bounds = {-1234, -100, -99, -7.5, -1,  0,   1,
                                        3.5,   9,    10,  99,   250, 1000};
    for (const double least : bounds)
        for (const double most : bounds)
            for (const int exclusive : {0, 1, 2, 3}) {
                const bool above = exclusive & 1, below = exclusive & 2;
                const CharAutomaton automaton = integer_within(range_of(least, above, most, below));
                for (int n = -1300; n <= 1300; n += (n > -120 && n < 120) ? 1 : 37)
                    ASSERT_EQ(matches(automaton, std::to_string(n)),
                              (above ? n > least : n >= least) && (below ? n < most : n <= most))
                        << n << " of " << least << " to " << most << ", " << exclusive;
            }
    const CharAutomaton automaton = integer_within(range_of(-5, false, 120, false));
    for (const char* text : {"-0", "01", "1.0", "1e1", "+1", "", "-"})
        EXPECT_FALSE(matches(automaton, text)) << text;
}

TEST(JsonNumber, OneBoundIsEnough) {
    const CharAutomaton from = integer_within(range_of(17, false, {}, false));
    const CharAutomaton to = integer_within(range_of({}, false, -17, true));
    for (const char* text : {"17", "99", "100", "999999999999999999"})
        EXPECT_TRUE(matches(from, text)) << text;
    for (const char* text : {"16", "-17", "1000000000000000000"})
        EXPECT_FALSE(matches(from, text)) << text;
    for (const char* text : {"-18", "-100"}) EXPECT_TRUE(matches(to, text)) << text;
    for (const char* text : {"-17", "-1", "0", "20"}) EXPECT_FALSE(matches(to, text)) << text;
}

TEST(JsonNumber, DecimalsAreThoseWithinTheBounds) {
    const std::vector<double> bounds = {-20.5, -3, -0.25, 0, 0.125, 0.5, 1, 1.05, 9.99, 10, 123.4};
    std::vector<std::string> texts;
    for (const char* whole : {"0", "1", "2", "3", "9", "10", "11", "20", "123", "124"})
        for (const char* fraction :
             {"",       ".0",  ".1",     ".12", ".124", ".125", ".1250", ".126",
              ".2",     ".25", ".25001", ".3",  ".4",   ".40",  ".41",   ".5",
              ".50001", ".9",  ".98",    ".99", ".990", ".991", ".05",   ".049"})
            for (const char* sign : {"", "-"})
                texts.push_back(std::string(sign) + whole + fraction);
    for (const double least : bounds)
        for (const double most : bounds)
            for (const int exclusive : {0, 1, 2, 3}) {
                const bool above = exclusive & 1, below = exclusive & 2;
                const CharAutomaton automaton = number_within(range_of(least, above, most, below));
                for (const std::string& text : texts) {
                    const double x = std::strtod(text.c_str(), nullptr);
                    if (x == 0 && text[0] == '-') continue;  // zero is written without a sign
                    ASSERT_EQ(matches(automaton, text),
                              (above ? x > least : x >= least) && (below ? x < most : x <= most))
                        << text << " of " << least << " to " << most << ", " << exclusive;
                }
            }
}

TEST(JsonNumber, ADoubleOfTheTextIsWithinTheBoundsToo) {
    const CharAutomaton above = number_within(range_of(0.1, true, {}, false));
    EXPECT_TRUE(matches(above, "0.100001"));
    EXPECT_FALSE(matches(above, "0.1000000000000000001"));
    const CharAutomaton large = number_within(range_of(1e14, true, {}, false));
    EXPECT_TRUE(matches(large, "100000000000001"));
    EXPECT_FALSE(matches(large, "100000000000000.00000001"));
    expect_contains(error_of([] { number_within(range_of({}, false, 1e15, false)); }),
                    "bounds of 10^15 and more are not supported");
}

TEST(JsonNumber, MultiplesAreThoseOfTheDivisor) {
    for (const double divisor : {1.0, 2.0, 3.0, 7.0, 10.0, 25.0, 128.0}) {
        const CharAutomaton automaton = integer_within(range_of(-60, false, 300, false, divisor));
        for (int n = -70; n <= 310; ++n)
            ASSERT_EQ(matches(automaton, std::to_string(n)),
                      n >= -60 && n <= 300 && n % static_cast<int>(divisor) == 0)
                << n << " of " << divisor;
    }
    const CharAutomaton cents = number_within(range_of(0, false, 5, false, 0.05));
    for (const char* text : {"0", "0.05", "0.1", "0.10", "1.25", "4.95", "5", "5.0", "0.050"})
        EXPECT_TRUE(matches(cents, text)) << text;
    for (const char* text : {"0.01", "0.06", "1.234", "5.05", "-0.05", "0.051"})
        EXPECT_FALSE(matches(cents, text)) << text;
    expect_contains(error_of([] { integer_within(range_of({}, false, {}, false, 123456)); }),
                    "multipleOf: 123456 is not supported");
}

TEST(JsonNumber, WithoutBoundsTheirLengthIsLimited) {
    const CharAutomaton integer(any_integer()), number(any_number());
    for (const char* text : {"0", "-1", "123456789012345678"})
        EXPECT_TRUE(matches(integer, text)) << text;
    for (const char* text : {"1234567890123456789", "1.5", "1e3", "00"})
        EXPECT_FALSE(matches(integer, text)) << text;
    for (const char* text : {"0", "-0", "1.5", "-12.25e-7", "1E+10", "0.0000000000000001"})
        EXPECT_TRUE(matches(number, text)) << text;
    for (const char* text : {"01", ".5", "1.", "1e", "1e123", "0x1", "NaN", "12345678901234567"})
        EXPECT_FALSE(matches(number, text)) << text;
}
