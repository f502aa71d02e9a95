#include "whisper/model/languages.h"

#include <gtest/gtest.h>

#include <cctype>
#include <utility>

#include "support/process.h"
#include "whisper/model/tokenizer.h"

namespace hark::whisper {
namespace {

TEST(Languages, NamesAndAliasesInAnyCase) {
    const std::pair<const char*, const char*> kKnown[] = {{"German", "de"},
                                                          {"german", "de"},
                                                          {"GERMAN", "de"},
                                                          {"de", "de"},
                                                          {"DE", "de"},
                                                          {"Cantonese", "yue"},
                                                          {"Haitian Creole", "ht"},
                                                          {"haitian", "ht"},
                                                          {"Burmese", "my"},
                                                          {"valencian", "ca"},
                                                          {"Flemish", "nl"},
                                                          {"Letzeburgesch", "lb"},
                                                          {"pushto", "ps"},
                                                          {"panjabi", "pa"},
                                                          {"Moldavian", "ro"},
                                                          {"moldovan", "ro"},
                                                          {"sinhalese", "si"},
                                                          {"castilian", "es"},
                                                          {"Mandarin", "zh"}};
    for (const auto& [name, code] : kKnown) EXPECT_EQ(language_code(name), code) << name;
}

TEST(Languages, WhatIsNeitherStaysAsItIs) {
    for (const char* name : {"", "auto", "Klingon", "germ", "x-own"})
        EXPECT_EQ(language_code(name), name);
}

// A code that is no name must lead to itself, for every language of a model.
TEST(Languages, EveryCodeOfTheDemoModelIsItself) {
    const Tokenizer tokenizer(test::source_dir() / "models/whisper-demo", 5448);
    for (const auto& [code, id] : tokenizer.special().languages) {
        EXPECT_EQ(language_code(code), code);
        std::string upper = code;
        for (char& c : upper) c = static_cast<char>(std::toupper(c));
        EXPECT_EQ(language_code(upper), code) << "the table lacks it";
    }
}

}  // namespace
}  // namespace hark::whisper
