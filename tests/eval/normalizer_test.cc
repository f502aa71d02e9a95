// Whisper's normalisers: openai/whisper's own cases (tests/test_normalizer.py) and
// openai-whisper's answers to several hundred texts (tests/golden/normalizer.py).
#include "eval/normalizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "core/json/json.h"
#include "eval/english_numbers.h"
#include "eval/english_spellings.h"
#include "support/fnv.h"
#include "support/process.h"
#include "text/unicode.h"

using namespace hark;
using nlohmann::json;

namespace {

struct Case {
    const char* spoken;
    const char* normal;
};

json golden() {
    return json::parse(test::read_text(test::source_dir() / "tests/golden/normalizer.json"));
}

}  // namespace

// openai/whisper tests/test_normalizer.py: test_number_normalizer, by both normalisers.
TEST(Normalizer, NumbersOfOpenaiWhispersTests) {
    const Case cases[] = {
        {"two", "2"},
        {"thirty one", "31"},
        {"five twenty four", "524"},
        {"nineteen ninety nine", "1999"},
        {"twenty nineteen", "2019"},
        {"two point five million", "2500000"},
        {"four point two billions", "4200000000s"},
        {"200 thousand", "200000"},
        {"200 thousand dollars", "$200000"},
        {"$20 million", "$20000000"},
        {"€52.4 million", "€52400000"},
        {"£77 thousands", "£77000s"},
        {"two double o eight", "2008"},
        {"three thousand twenty nine", "3029"},
        {"forty three thousand two hundred sixty", "43260"},
        {"forty three thousand two hundred and sixty", "43260"},
        {"nineteen fifties", "1950s"},
        {"thirty first", "31st"},
        {"thirty three thousand and three hundred and thirty third", "33333rd"},
        {"three billion", "3000000000"},
        {"millions", "1000000s"},
        {"july third twenty twenty", "july 3rd 2020"},
        {"august twenty sixth twenty twenty one", "august 26th 2021"},
        {"3 14", "3 14"},
        {"3.14", "3.14"},
        {"3 point 2", "3.2"},
        {"3 point 14", "3.14"},
        {"fourteen point 4", "14.4"},
        {"two point two five dollars", "$2.25"},
        {"two hundred million dollars", "$200000000"},
        {"$20.1 million", "$20100000"},
        {"ninety percent", "90%"},
        {"seventy six per cent", "76%"},
        {"double oh seven", "007"},
        {"double zero seven", "007"},
        {"nine one one", "911"},
        {"nine double one", "911"},
        {"one triple oh one", "10001"},
        {"two thousandth", "2000th"},
        {"thirty two thousandth", "32000th"},
        {"minus 500", "-500"},
        {"positive twenty thousand", "+20000"},
        {"two dollars and seventy cents", "$2.70"},
        {"3 cents", "¢3"},
        {"$0.36", "¢36"},
        {"three euros and sixty five cents", "€3.65"},
        {"three and a half million", "3500000"},
        {"forty eight and a half dollars", "$48.5"},
        {"b747", "b 747"},
        {"10 th", "10th"},
        {"10th", "10th"},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(normalize_english_numbers(c.spoken), c.normal);
        EXPECT_EQ(normalize_english(c.spoken), c.normal);
    }
}

// openai/whisper tests/test_normalizer.py: test_spelling_normalizer, test_text_normalizer.
TEST(Normalizer, SpellingsAndTextOfOpenaiWhispersTests) {
    EXPECT_EQ(normalize_english_spellings("mobilisation"), "mobilization");
    EXPECT_EQ(normalize_english_spellings("cancelation"), "cancellation");
    const Case cases[] = {
        {"Let's", "let us"},
        {"he's like", "he is like"},
        {"she's been like", "she has been like"},
        {"10km", "10 km"},
        {"10mm", "10 mm"},
        {"RC232", "rc 232"},
        {"Mr. Park visited Assoc. Prof. Kim Jr.",
         "mister park visited associate professor kim junior"},
    };
    for (const Case& c : cases) EXPECT_EQ(normalize_english(c.spoken), c.normal);
}

TEST(Normalizer, EqualsOpenaiWhisperOnManyTexts) {
    const json answers = golden();
    int compared = 0;
    for (const json& c : answers["cases"]) {
        const auto text = c["text"].get<std::string>();
        EXPECT_EQ(normalize_english(text), c["english"].get<std::string>()) << c["text"];
        EXPECT_EQ(normalize_basic(text), c["basic"].get<std::string>()) << c["text"];
        EXPECT_EQ(normalize_basic(text, {.remove_diacritics = true}), c["bare"].get<std::string>())
            << c["text"];
        EXPECT_EQ(normalize_basic(text, {.split_letters = true}), c["letters"].get<std::string>())
            << c["text"];
        EXPECT_EQ(normalize_english_numbers(lower_case(text)), c["numbers"].get<std::string>())
            << c["text"];
        ++compared;
    }
    EXPECT_GT(compared, 600);
}

TEST(Normalizer, HasEverySpellingOfTheList) {
    const json wanted = golden()["spellings"];
    std::vector<std::string> lines;
    for (const auto& [british, american] : english_spellings())
        lines.push_back(british + " " + american + "\n");
    std::sort(lines.begin(), lines.end());
    std::string text;
    for (const std::string& line : lines) text += line;
    EXPECT_EQ(lines.size(), wanted["count"].get<size_t>());
    EXPECT_EQ(test::fnv1a(text), wanted["fnv1a"].get<std::string>());
}

TEST(Normalizer, TakesHugeNumbersAndLongUnclosedText) {
    // Only what is below a thousand is multiplied.
    const std::string zeros(10000, '0'), thousand = "1000" + zeros;
    EXPECT_EQ(normalize_english_numbers(thousand + " decillion"), thousand);
    EXPECT_EQ(normalize_english_numbers("1" + zeros + "007 decillion dollars"),
              "$1" + std::string(10003 - 34, '0') + "7" + std::string(33, '0'));
    EXPECT_EQ(normalize_basic(std::string(300000, '(')), " ");
    EXPECT_EQ(normalize_basic(std::string(300000, '[') + "x"), " x");
    EXPECT_EQ(normalize_english(std::string(300000, ' ') + "x"), "x");
}
