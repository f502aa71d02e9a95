#include "gpt/chat/tool_calls.h"

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

TEST(ToolCalls, AfterMistralsMarker) {
    EXPECT_EQ(
        taken(R"(Let me see.[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}, "id": "x12345678"},)"
              R"({"name": "g", "arguments": {}}])"),
        Taken(R"(x12345678 f{"a":1};call_1 g{};)", "Let me see."));
    EXPECT_EQ(
        taken(R"([TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]y2345[ARGS]{"b": "[ARGS]"})"),
        Taken(R"(call_0 f{"a":1};y2345 g{"b":"[ARGS]"};)", ""));
    // One that is none stays, the other is taken.
    EXPECT_EQ(taken(R"([TOOL_CALLS]f[ARGS]{"a":[TOOL_CALLS]g[ARGS]{})"),
              Taken("call_0 g{};", R"([TOOL_CALLS]f[ARGS]{"a":)"));
}

TEST(ToolCalls, OfChannels) {
    const auto calls = gpt::openai_calls({{"f", "{\"a\": 1}\n"}, {"browser.open", "{\"a\":"}});
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0]["function"]["arguments"], R"({"a":1})");
    EXPECT_EQ(calls[1]["id"], "call_1");
    EXPECT_EQ(calls[1]["function"]["name"], "browser.open");
    EXPECT_EQ(calls[1]["function"]["arguments"], R"({"a":)");
    EXPECT_TRUE(gpt::openai_calls({}).is_null());
}

TEST(ToolCalls, WhatIsNoCallStaysText) {
    for (const char* text :
         {"", "text", R"({"name": "f"})", R"({"name": 1, "arguments": {}})", R"({"a": 1})",
          "<tool_call>not json</tool_call>", R"(<tool_call>{"name": "f", "arguments": "x"})",
          R"(a <tool_call>{"name": "f", "arguments": {})", "<tool_call>[]</tool_call>",
          "[TOOL_CALLS]", "a[TOOL_CALLS] [{}]", "[TOOL_CALLS]f{}", "[TOOL_CALLS][ARGS]{}\n"})
        EXPECT_EQ(taken(text), Taken("", text)) << text;
}

}  // namespace
}  // namespace hark::test
