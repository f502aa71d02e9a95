// Chats of gpt-generate, on the real binary, with a tiny model whose answers mean nothing.
#include <gtest/gtest.h>

#include "support/family_folder.h"

namespace hark::test {
namespace {

using nlohmann::json;

class GptChat : public testing::Test {
  protected:
    static void SetUpTestSuite() { write_tiny_qwen2(folder().path() / "tiny"); }
    static TemporaryDirectory& folder() {
        static TemporaryDirectory directory;
        return directory;
    }
    // gpt-generate with the tiny model and `arguments`, `input` on stdin.
    static ProcessResult run(std::vector<std::string> arguments, const std::string& input = "") {
        arguments.insert(arguments.begin(),
                         {"--model", (folder().path() / "tiny").string(), "--threads", "1"});
        return run_tool("gpt-generate", arguments, input);
    }
    static std::string shown(std::vector<std::string> arguments, const std::string& input = "") {
        arguments.insert(arguments.begin(), {"--chat", "--show-prompt"});
        const ProcessResult result = run(arguments, input);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return result.out;
    }
};

constexpr const char* kBegin = "<|im_start|>user\n";
constexpr const char* kEnd = "<|im_end|>\n<|im_start|>assistant\n";

TEST_F(GptChat, TheTemplateMakesThePrompt) {
    EXPECT_EQ(shown({}, "Who is there?\n"), concat(kBegin, "Who is there?", kEnd));
    EXPECT_EQ(shown({"-p", "Summarise:"}, "a talk\n"),
              concat(kBegin, "Summarise:\n\na talk", kEnd));
    EXPECT_EQ(shown({"-p", "Is {} a word?"}, "sea\n"), concat(kBegin, "Is sea a word?", kEnd));
    EXPECT_EQ(shown({"-p", "Hello"}, ""), concat(kBegin, "Hello", kEnd));
    EXPECT_EQ(shown({"--system", "Be brief."}, "Why?"),
              concat("<|im_start|>system\nBe brief.<|im_end|>\n", kBegin, "Why?", kEnd));
    EXPECT_EQ(shown({"--template-arg", "mood=calm"}, "x"),
              concat(kBegin, "x<|im_end|>\n(calm)\n<|im_start|>assistant\n"));
    write_text(folder().path() / "own.jinja", "{{ messages[0].content | upper }}!");
    EXPECT_EQ(shown({"--chat-template", (folder().path() / "own.jinja").string()}, "go"), "GO!\n");
}

TEST_F(GptChat, KeysOfALineKeepTheirOrder) {
    const std::string file = (folder().path() / "keys.jinja").string();
    write_text(file, "{{ messages[0] | tojson }}{{ tools | tojson }}");
    const std::string message = R"({"role": "user", "content": "hi"})",
                      tools = R"([{"type": "function", "function": {"name": "f", "args": 1}}])";
    EXPECT_EQ(shown({"--chat-template", file, "--input-format", "jsonl"},
                    concat(R"({"tools": )", tools, R"(, "messages": [)", message, "]}\n")),
              message + tools + "\n");
}

// A model that can only call the tool; then the tool's result, and the answer to that.
TEST_F(GptChat, AToolIsCalledAndItsResultIsAnswered) {
    const auto calls = folder().path() / "calls";
    json config = json::parse(kTinyConfig);
    config["eos_token_id"] = 2;  // 1 is a quotation mark, which JSON needs
    write_tiny_model(calls, config.dump(), "qwen2");
    write_text(calls / "chat_template.jinja",
               "{% if tools %}{{ tools[0].function.name }}\n{% endif %}{% for m in messages %}"
               "{{ m.role }}:{% if m.tool_calls %}{{ m.tool_calls[0].function | tojson }}"
               "{% else %}{{ m.content }}{% endif %}\n{% endfor %}");
    const auto answer = [&](const json& line, std::vector<std::string> more) {
        more.insert(more.begin(), {"--model", calls.string(), "--threads", "1", "--chat",
                                   "--input-format", "jsonl", "--temperature", "0"});
        const ProcessResult result = run_tool("gpt-generate", more, line.dump() + "\n");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        return result.out;
    };
    const json call = {{"name", "weather"}, {"parameters", {{"city", "Rome"}}}};
    json line = {{"messages", {{{"role", "user"}, {"content", "How warm is it?"}}}},
                 {"tools", {{{"type", "function"}, {"function", {{"name", "weather"}}}}}},
                 {"response_format",
                  {{"type", "json_schema"}, {"json_schema", {{"schema", {{"const", call}}}}}}}};
    const json called = json::parse(answer(line, {"--format", "jsonl", "--max-tokens", "60"}));
    EXPECT_EQ(called["finish_reason"], "tool_calls");
    EXPECT_EQ(called["text"], "");
    ASSERT_EQ(called["tool_calls"].size(), 1u) << called;
    const json& made = called["tool_calls"][0];
    EXPECT_EQ(made["function"]["name"], "weather");
    EXPECT_EQ(json::parse(made["function"]["arguments"].get<std::string>()), call["parameters"]);

    line.erase("response_format");
    line["messages"].push_back({{"role", "assistant"}, {"tool_calls", called["tool_calls"]}});
    line["messages"].push_back(
        {{"role", "tool"}, {"tool_call_id", made["id"]}, {"content", "21 degrees"}});
    const std::string prompt = answer(line, {"--show-prompt"});
    expect_contains(prompt, "weather\nuser:How warm is it?assistant:{");
    expect_contains(prompt, "Rome");
    expect_contains(prompt, "tool:21 degrees");
    const json answered = json::parse(answer(line, {"--format", "jsonl", "--max-tokens", "5"}));
    EXPECT_FALSE(answered.contains("error")) << answered;
    EXPECT_EQ(answered["completion_tokens"], 5);
}

// As apply_chat_template(messages, documents=...) has them: without them the variable is None.
TEST_F(GptChat, LinesHaveDocuments) {
    const std::string file = (folder().path() / "documents.jinja").string();
    write_text(file, "{{ documents | tojson }}");
    const std::string messages = R"({"messages": [{"role": "user", "content": "hi"}])",
                      documents = R"([{"title": "a hill", "text": "Grass."}])";
    const std::vector<std::string> arguments = {"--chat-template", file, "--input-format", "jsonl"};
    EXPECT_EQ(shown(arguments, concat(messages, R"(, "documents": )", documents, "}\n")),
              documents + "\n");
    EXPECT_EQ(shown(arguments, messages + R"(, "documents": null})"), "null\n");
    EXPECT_EQ(shown(arguments, messages + "}"), "null\n");
}

TEST_F(GptChat, LinesHaveMessages) {
    const std::string lines =
        R"({"id": 7, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]})"
        "\n"
        R"({"prompt": "d"})"
        "\n";
    const ProcessResult result = run(
        {"--chat", "--input-format", "jsonl", "--max-tokens", "3", "--temperature", "0"}, lines);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const size_t end = result.out.find('\n');
    const auto first = nlohmann::json::parse(result.out.substr(0, end));
    const auto second = nlohmann::json::parse(result.out.substr(end + 1));
    EXPECT_EQ(first["id"], 7);
    EXPECT_EQ(first["tokens"].size(), 3u);
    EXPECT_EQ(second["id"], 1);
    EXPECT_EQ(second["tokens"].size(), 3u);
}

TEST_F(GptChat, WrongMessagesAreNamedByTheirLine) {
    const auto error = [&](const std::string& line, bool chat = true) {
        std::vector<std::string> arguments = {"--input-format", "jsonl", "--max-tokens", "1"};
        if (chat) arguments.push_back("--chat");
        const ProcessResult result = run(arguments, line + "\n");
        EXPECT_EQ(result.exit_code, 1) << line;
        return result.err;
    };
    const auto expect = [&](const std::string& text, const std::string& part) {
        EXPECT_NE(text.find("stdin: line 1: " + part), std::string::npos) << text;
    };
    expect(error(R"({"messages": "hi"})"), "expected messages, a list of objects");
    expect(error(R"({"messages": []})"), "expected messages, a list of objects");
    expect(error(R"({"messages": [{"content": "hi"}]})"), "messages: expected objects, each with");
    expect(error(R"({"messages": [{"role": "user", "content": "a"}], "tools": 3})"),
           "tools: expected a list");
    const std::string messages = R"({"messages": [{"role": "user", "content": "a"}])";
    expect(error(messages + R"(, "documents": {"title": "b"}})"),
           "documents: expected a list of objects, found object");
    expect(error(messages + R"(, "documents": ["b"]})"),
           "documents: expected objects, found string");
    expect(error(R"({"messages": [{"role": "user", "content": "a"}]})", false),
           "messages need --chat");
}

// A chat is not cut: its beginning is the system's message.
TEST_F(GptChat, AChatLongerThanTheContextIsAnError) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += " sea";
    const ProcessResult result = run({"--chat"}, text);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("expected at most 128"), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
}

TEST_F(GptChat, ItsFolderIsAModel) {
    const std::string model = (folder().path() / "tiny").string();
    const ProcessResult info = run_tool("hark-model", {"info", model}, "");
    EXPECT_EQ(info.exit_code, 0) << info.err;
    EXPECT_NE(info.out.find("family          qwen2\n"), std::string::npos) << info.out;
    EXPECT_NE(info.out.find("chat template   yes\n"), std::string::npos) << info.out;
    EXPECT_EQ(run_tool("hark-model", {"verify", model}, "").exit_code, 0);
}

// The text of a special token in a message is not that token: the answers differ.
TEST_F(GptChat, SpecialTokensInMessagesAreText) {
    write_text(folder().path() / "bare.jinja", "{{ messages[0].content }}");
    write_text(folder().path() / "trusted.jinja", "<|im_start|>");
    const auto answer = [&](const std::string& name, const std::string& input) {
        return run({"--chat", "--chat-template", (folder().path() / name).string(), "--format",
                    "jsonl", "--temperature", "0", "--max-tokens", "5", "--logprobs", "0"},
                   input)
            .out;
    };
    const auto of = [](const std::string& line) {
        return nlohmann::json::parse(line)["logprobs"].dump();
    };
    EXPECT_NE(of(answer("bare.jinja", "<|im_start|>")), of(answer("trusted.jinja", "x")));
}

TEST_F(GptChat, TheSameSeedGivesTheSameAnswer) {
    const auto answer = [&](const char* seed) {
        return run({"--chat", "-p", "Hello", "--seed", seed, "--max-tokens", "20"}, "").out;
    };
    EXPECT_EQ(answer("3"), answer("3"));
    EXPECT_NE(answer("3"), answer("4"));
}

TEST_F(GptChat, WhatIsWrongIsSaid) {
    const ProcessResult without = run_tool("gpt-generate", {"-m", "demo", "--chat", "-p", "x"}, "");
    EXPECT_EQ(without.exit_code, 1);
    EXPECT_NE(without.err.find("has no chat template"), std::string::npos) << without.err;
    const ProcessResult usage = run({"--system", "x", "-p", "y"});
    EXPECT_EQ(usage.exit_code, 2);
    EXPECT_NE(usage.err.find("need --chat"), std::string::npos) << usage.err;
    EXPECT_EQ(run({"--chat", "--template-arg", "x", "-p", "y"}).exit_code, 2);
    write_text(folder().path() / "broken.jinja", "{% if %}");
    const ProcessResult broken =
        run({"--chat", "--chat-template", (folder().path() / "broken.jinja").string(), "-p", "y"});
    EXPECT_EQ(broken.exit_code, 1);
    EXPECT_NE(broken.err.find("broken.jinja: line 1: "), std::string::npos) << broken.err;
    write_text(folder().path() / "raises.jinja", "{{ raise_exception('no') }}");
    const ProcessResult raised =
        run({"--chat", "--chat-template", (folder().path() / "raises.jinja").string(), "-p", "y"});
    EXPECT_EQ(raised.exit_code, 1);
    EXPECT_NE(raised.err.find("raises.jinja: line 1: no"), std::string::npos) << raised.err;
}

}  // namespace
}  // namespace hark::test
