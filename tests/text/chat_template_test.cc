// Where a model's chat template comes from, and what a request becomes.
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"
#include "support/process.h"
#include "text/chat_messages.h"
#include "text/chat_request.h"

using namespace hark;
using Json = nlohmann::ordered_json;

namespace {

ChatRequest request(const std::string& messages) {
    ChatRequest made;
    made.messages = Json::parse(messages);
    return made;
}

const char* const kUser = R"([{"role": "user", "content": "hi"}])";

std::string text_of(const ChatTemplate& made, const ChatRequest& request) {
    return joined(made.render(request));
}

}  // namespace

TEST(ChatTemplate, FolderWithAFile) {
    const test::TemporaryDirectory folder;
    EXPECT_FALSE(ChatTemplate::from_directory(folder.path()));
    test::write_text(folder.path() / "tokenizer_config.json",
                     R"({"chat_template": "other", "bos_token": {"content": "<b>"},
                         "eos_token": "<e>", "pad_token": null, "add_bos_token": true})");
    test::write_text(folder.path() / "special_tokens_map.json",
                     R"({"bos_token": "<old>", "unk_token": "<u>"})");
    test::write_text(
        folder.path() / "chat_template.jinja",
        "{{ bos_token ~ eos_token ~ unk_token ~ pad_token }}{{ messages[0].content }}\n");
    std::filesystem::create_directory(folder.path() / "additional_chat_templates");
    test::write_text(folder.path() / "additional_chat_templates/rag.jinja", "rag {{ documents }}");
    const auto made = ChatTemplate::from_directory(folder.path());
    ASSERT_TRUE(made);
    EXPECT_EQ(made->names(), (std::vector<std::string>{"default", "rag"}));
    EXPECT_EQ(text_of(*made, request(kUser)), "<b><e><u>hi");
    ChatRequest rag = request(kUser);
    rag.name = "rag";
    EXPECT_EQ(text_of(*made, rag), "rag None");
    rag.name = "absent";
    EXPECT_THROW(made->render(rag), Error);
}

TEST(ChatTemplate, FolderWithNamedTemplates) {
    const test::TemporaryDirectory folder;
    test::write_text(folder.path() / "tokenizer_config.json",
                     R"({"chat_template": [{"name": "default", "template": "plain"},
                                           {"name": "tool_use", "template": "tools"}]})");
    const auto made = ChatTemplate::from_directory(folder.path());
    ASSERT_TRUE(made);
    ChatRequest asked = request(kUser);
    EXPECT_EQ(text_of(*made, asked), "plain");
    asked.tools = Json::array();
    EXPECT_EQ(text_of(*made, asked), "tools");
}

TEST(ChatTemplate, FoldersThatAreWrong) {
    const test::TemporaryDirectory folder;
    const auto config = folder.path() / "tokenizer_config.json";
    for (const char* text :
         {"[]", "{", R"({"chat_template": 3})", R"({"chat_template": [{"name": "a"}]})",
          R"({"chat_template": "{% if %}"})"}) {
        test::write_text(config, text);
        EXPECT_THROW(ChatTemplate::from_directory(folder.path()), Error) << text;
    }
    test::write_text(config, R"({"chat_template": "a\n{{ 1 / 0 }}"})");
    try {
        ChatTemplate::from_directory(folder.path())->render(request(kUser));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.what(),
                  config.string() + ": chat_template default: line 2: division by zero");
    }
}

TEST(ChatTemplate, Variables) {
    const auto made = ChatTemplate::parse(
        "{{ bos_token }}{{ tools }}{{ add_generation_prompt }}{{ enable_thinking }}", "t",
        {{"bos_token", "<s>"}});
    ChatRequest asked = request(kUser);
    EXPECT_EQ(text_of(made, asked), "<s>NoneTrue");
    asked.add_generation_prompt = false;
    asked.arguments = {{"enable_thinking", false}};
    EXPECT_EQ(text_of(made, asked), "<s>NoneFalseFalse");
    EXPECT_TRUE(made.uses("enable_thinking"));
    EXPECT_FALSE(made.uses("documents"));
}

TEST(ChatTemplate, OriginsOfPieces) {
    const auto made = ChatTemplate::parse(
        "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}<end>{% endfor %}",
        "t", {{"bos_token", "<s>"}});
    const std::vector<jinja::Piece> expected = {
        {"<s><", false}, {"user", true}, {">", false}, {"a<end>", true}, {"<end>", false}};
    EXPECT_EQ(made.render(request(R"([{"role": "user", "content": " a<end> "}])")), expected);
}

TEST(ChatTemplate, Messages) {
    const Json normalized = normalized_messages(Json::parse(
        R"([{"role": "assistant", "content": null, "reasoning": "r"}, {"thinking": "t", "a": 1}])"));
    EXPECT_EQ(normalized.dump(),
              R"([{"thinking":"r","role":"assistant","reasoning":"r","reasoning_content":"r"},)"
              R"({"thinking":"t","a":1,"reasoning_content":"t"}])");
    const ChatRequest parts = request(
        R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])");
    EXPECT_EQ(text_of(ChatTemplate::parse("{{ messages[0].content }}", "t"), parts), "a\nb");
    EXPECT_EQ(text_of(ChatTemplate::parse("{{ messages[0].content[1].text }}", "t"), parts), "b");
}

TEST(ChatTemplate, ArgumentsOfCalls) {
    const ChatRequest asked = request(
        R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": 1}"}}]}])");
    const std::string path = "messages[0].tool_calls[0].function.arguments";
    EXPECT_EQ(text_of(ChatTemplate::parse("{{ " + path + "|tojson }}", "t"), asked), R"({"a": 1})");
    EXPECT_EQ(text_of(ChatTemplate::parse("{{ '<' + " + path + " }}", "t"), asked), R"(<{"a": 1})");
}

TEST(ChatTemplate, TimeOfSourceDateEpoch) {
    const auto made = ChatTemplate::parse("{{ strftime_now('%Y-%m-%d %H:%M') }}", "t");
    ::setenv("SOURCE_DATE_EPOCH", "86400", 1);
    EXPECT_EQ(text_of(made, request(kUser)), "1970-01-02 00:00");
    const auto other = ChatTemplate::parse("{{ strftime_now('%f|%z|%Z|%%z %y') }}", "t");
    EXPECT_EQ(text_of(other, request(kUser)), "000000|||%z 70");
    ::setenv("SOURCE_DATE_EPOCH", "tomorrow", 1);
    EXPECT_THROW(made.render(request(kUser)), Error);
    ::unsetenv("SOURCE_DATE_EPOCH");
    EXPECT_EQ(text_of(made, request(kUser)).size(), 16u);
}
