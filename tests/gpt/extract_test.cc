#include "gpt/chat/extract.h"

#include <gtest/gtest.h>

namespace hark::test {
namespace {

using gpt::first_code_block;
using gpt::first_json;
using Found = std::optional<std::string>;

TEST(Extract, TheFirstCodeBlock) {
    EXPECT_EQ(first_code_block("Here:\n```python\nprint(1)\n\nx\n```\nand\n```\ny\n```\n"),
              Found("print(1)\n\nx\n"));
    EXPECT_EQ(first_code_block("~~~\n```\n~~~"), Found("```\n"));
    EXPECT_EQ(first_code_block("````\n```\n````"), Found("```\n"));
    EXPECT_EQ(first_code_block("  ```\n    a\n b\n  ```"), Found("  a\nb\n"));
    EXPECT_EQ(first_code_block("```\r\na\r\n```\r\n"), Found("a\r\n"));
    EXPECT_EQ(first_code_block("```\n```"), Found(""));
}

TEST(Extract, NoWholeCodeBlock) {
    for (const char* text : {"", "text", "`a`", "```a```", "    ```\n    a\n    ```", "```\nopen",
                             "``\na\n``", "```\na\n``` b\n"})
        EXPECT_EQ(first_code_block(text), std::nullopt) << text;
}

TEST(Extract, TheFirstJsonValue) {
    EXPECT_EQ(first_json(R"(Here 3 are: {"a": [1, "}"]} and {"b": 2})"),
              Found(R"({"a": [1, "}"]})"));
    EXPECT_EQ(first_json("```json\n[1,\n 2]\n```\n"), Found("[1,\n 2]"));
    EXPECT_EQ(first_json(" \"text\"\n"), Found("\"text\""));
    EXPECT_EQ(first_json("42"), Found("42"));
    EXPECT_EQ(first_json(R"([see] {not: json} [ {"a": 1} )"), Found(R"({"a": 1})"));
    EXPECT_EQ(first_json(R"({"a": "\"{"})"), Found(R"({"a": "\"{"})"));
}

TEST(Extract, NoJsonValue) {
    for (const char* text : {"", " ", "The answer is 42.", "{", "{\"a\": 1", "[}", "}{"})
        EXPECT_EQ(first_json(text), std::nullopt) << text;
    EXPECT_EQ(first_json(std::string(100'000, '[')), std::nullopt);
}

}  // namespace
}  // namespace hark::test
