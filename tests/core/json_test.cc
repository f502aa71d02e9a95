#include "core/json/json.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace hark {
namespace {

std::string error_of(const std::string& text) {
    try {
        return parse_json(text, "line 3").is_discarded() ? "discarded" : "";
    } catch (const Error& wrong) {
        return wrong.what();
    }
}

TEST(Json, HalfOfASurrogatePairIsNamed) {
    const std::string half = "line 3: a string has half of a surrogate pair (\\ud800 to \\udfff)";
    for (const char* text :
         {R"({"text": "a\ud800b"})", R"(["\uDFFF"])", R"({"\ud83d": 1})", R"("\ud83d\ud83d")"})
        EXPECT_EQ(error_of(text), half) << text;
    EXPECT_EQ(error_of(R"({"text": "\ud83d\ude00 \\ud800"})"), "");
    EXPECT_EQ(error_of(R"({"text": "\ud83d\ude00)"), "discarded");
    EXPECT_THROW(parse_ordered_json(R"(["\ud800"])", ""), Error);
}

TEST(Json, TextThatIsNotJsonIsDiscarded) {
    for (const char* text : {"", "{", "nothing", "1e999", "\"\xff\""})
        EXPECT_EQ(error_of(text), "discarded") << text;
    EXPECT_EQ(error_of(std::string(65, '[')), "line 3: JSON is nested deeper than 64 levels");
}

}  // namespace
}  // namespace hark
