#include "gpt/engine/tool_calls.h"

#include <gtest/gtest.h>

namespace hark::test {
namespace {

// The calls, and the text that is left.
std::pair<std::string, std::string> taken(std::string text) {
    const auto calls = gpt::take_tool_calls(text);
    std::string names;
    for (const auto& call : calls) {
        EXPECT_EQ(call["type"], "function");
        names += call["id"].get<std::string>() + " " + call["function"]["name"].get<std::string>() +
                 call["function"]["arguments"].get<std::string>() + ";";
    }
    return {names, text};
}

using Taken = std::pair<std::string, std::string>;

TEST(ToolCalls, BetweenTags) {
    EXPECT_EQ(taken("Let me see.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"z\": 1, \"a\": "
                    "\"b\"}}\n</tool_call>\n<tool_call>{\"name\": \"g\", \"arguments\": {}}"
                    "</tool_call>"),
              Taken(R"(call_0 f{"z":1,"a":"b"};call_1 g{};)", "Let me see."));
    EXPECT_EQ(taken(R"(<tool_call>[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}])"
                    "</tool_call>"),
              Taken("call_0 f{};call_1 g{};", ""));
}

TEST(ToolCalls, AsTheWholeText) {
    EXPECT_EQ(taken(R"({"name": "f", "parameters": {"x": [1]}})"
                    "\n"),
              Taken(R"(call_0 f{"x":[1]};)", ""));
}

TEST(ToolCalls, WhatIsNoCallStaysText) {
    for (const char* text :
         {"", "text", R"({"name": "f"})", R"({"name": 1, "arguments": {}})", R"({"a": 1})",
          "<tool_call>not json</tool_call>", R"(<tool_call>{"name": "f", "arguments": "x"})",
          R"(a <tool_call>{"name": "f", "arguments": {})", "<tool_call>[]</tool_call>"})
        EXPECT_EQ(taken(text), Taken("", text)) << text;
}

}  // namespace
}  // namespace hark::test
