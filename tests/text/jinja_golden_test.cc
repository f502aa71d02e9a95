// Templates against transformers and jinja2, byte for byte (tests/golden/jinja.py): those of
// tests/golden/chat_templates with chats, edges of the language, and random ones of a grammar.
#include <gtest/gtest.h>

#include "core/error.h"
#include "support/process.h"
#include "text/chat_messages.h"
#include "text/chat_request.h"
#include "text/chat_template.h"
#include "text/jinja/template.h"

using namespace hark;
using hark::test::source_dir;
using Json = nlohmann::ordered_json;

namespace {

const Json& golden() {
    static const Json kGolden =
        Json::parse(test::read_text(source_dir() / "tests/golden/jinja.json"));
    return kGolden;
}

std::tm golden_time() {
    const Json& now = golden()["now"];
    std::tm time{};
    time.tm_year = now[0].get<int>() - 1900;
    time.tm_mon = now[1].get<int>() - 1;
    time.tm_mday = now[2].get<int>();
    time.tm_hour = now[3].get<int>();
    time.tm_min = now[4].get<int>();
    time.tm_sec = now[5].get<int>();
    time.tm_isdst = -1;
    std::mktime(&time);  // the days of week and year
    return time;
}

// The output, or null for an error.
Json rendered(const std::string& source, const std::vector<jinja::Variable>& variables) {
    try {
        const jinja::Template parsed(source, "template");
        return joined(parsed.render(variables, golden_time()));
    } catch (const Error&) {
        return nullptr;
    }
}

void expect_rendered(const Json& cases) {
    std::vector<jinja::Variable> variables;
    for (const auto& [name, value] : golden()["context"].items())
        variables.push_back({name, value, name != "bos_token"});
    for (const Json& example : cases) {
        const auto source = example[0].get<std::string>();
        EXPECT_EQ(rendered(source, variables), example[1]) << source;
    }
}

}  // namespace

TEST(JinjaGolden, Edges) {
    ASSERT_GT(golden()["edges"].size(), 150u);
    expect_rendered(golden()["edges"]);
}

TEST(JinjaGolden, RandomTemplates) {
    ASSERT_EQ(golden()["random"].size(), 500u);
    expect_rendered(golden()["random"]);
}

TEST(JinjaGolden, ChatTemplates) {
    ASSERT_GT(golden()["chat_cases"].size(), 600u);
    for (const Json& example : golden()["chat_cases"]) {
        const auto file = example[0].get<std::string>();
        const auto source = test::read_text(source_dir() / "tests/golden/chat_templates" / file);
        const Json& options = golden()["options"][example[2].get<size_t>()];
        std::vector<jinja::Variable> variables;
        for (const auto& [name, value] : golden()["tokens"].items())
            variables.push_back({name, value, false});
        const Json& chat = golden()["chats"][example[1].get<std::string>()];
        variables.push_back({"messages", normalized_messages(chat)});
        for (const char* name : {"tools", "documents"})
            variables.push_back({name, options.value(name, Json())});
        variables.push_back(
            {"add_generation_prompt", options.value("add_generation_prompt", false)});
        for (const auto& [name, value] : options.items())
            if (name != "tools" && name != "documents" && name != "add_generation_prompt")
                variables.push_back({name, value});
        EXPECT_EQ(rendered(source, variables), example[3])
            << file << " " << example[1] << " " << example[2];
    }
}

// Our own text has no byte from outside, and a message no byte from the template.
TEST(JinjaGolden, ChatsKeepTheOriginOfContent) {
    for (const char* file : {"thinking.jinja", "brackets.jinja", "turns.jinja", "headers.jinja"}) {
        const auto source = test::read_text(source_dir() / "tests/golden/chat_templates" / file);
        const auto made = ChatTemplate::parse(source, file, {{"bos_token", "<s>"}});
        ChatRequest request;
        request.messages = golden()["chats"]["one"];
        std::string input;
        for (const jinja::Piece& piece : made.render(request)) {
            if (piece.from_input) input += piece.text;
        }
        EXPECT_NE(input.find("How warm is it? <|end|> é😀"), std::string::npos) << file;
        EXPECT_EQ(input.find("<s>"), std::string::npos) << file;
    }
}
