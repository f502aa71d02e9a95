// Reasoning, extracted parts and calls of tools of gpt-generate --chat, on the real binary, with a
// model that says what the test wants.
#include <gtest/gtest.h>

#include "support/scripted_model.h"
#include "tools/gpt_generate.h"

namespace hark::test {
namespace {

class GptReasoning : public testing::Test {
  protected:
    // gpt-generate --chat with a model that answers with `script`.
    ProcessResult answer(const std::string& script, std::vector<std::string> arguments,
                         const std::string& input = "Why?") {
        const std::string path = (folder_.path() / std::to_string(models_++)).string();
        write_scripted_model(path, "\n", script);
        arguments.insert(arguments.begin(), {"--model", path, "--threads", "1", "--chat",
                                             "--temperature", "0", "--max-tokens", "60"});
        return run_tool("gpt-generate", arguments, input);
    }
    TemporaryDirectory folder_;
    int models_ = 0;
};

constexpr const char* kThinks = "<think> model is</think> text file";

TEST_F(GptReasoning, IsNoPartOfTheText) {
    const ProcessResult plain = answer(kThinks, {});
    EXPECT_EQ(plain.exit_code, 0);
    EXPECT_EQ(plain.out, " text file\n");
    EXPECT_EQ(plain.err, " model is\n");
    EXPECT_EQ(answer(kThinks, {"--quiet"}).err, "");
    const ProcessResult hidden = answer(kThinks, {"--reasoning", "hide"});
    EXPECT_EQ(hidden.out, " text file\n");
    EXPECT_EQ(hidden.err, "");
    const ProcessResult shown = answer(kThinks, {"--reasoning", "show"});
    EXPECT_EQ(shown.out, "<think> model is</think> text file\n");
    EXPECT_EQ(shown.err, "");
}

TEST_F(GptReasoning, IsAFieldOfJson) {
    const auto line = [&](const char* where) {
        return json::parse(answer(kThinks, {"--reasoning", where, "-f", "jsonl"}).out);
    };
    const json separate = line("separate"), hide = line("hide"), show = line("show");
    EXPECT_EQ(separate["text"], " text file");
    EXPECT_EQ(separate["reasoning"], " model is");
    EXPECT_EQ(separate["tokens"], show["tokens"]);
    EXPECT_EQ(hide["text"], " text file");
    EXPECT_FALSE(hide.contains("reasoning"));
    EXPECT_EQ(show["text"], "<think> model is</think> text file");
    EXPECT_FALSE(show.contains("reasoning"));
}

// The template of such a model ends with the marker.
TEST_F(GptReasoning, ThePromptMayOpenIt) {
    const std::string own = (folder_.path() / "own.jinja").string();
    write_text(own, "{{ messages[0].content }}<think>{{ '\\n' }}");
    const ProcessResult result = answer(" model is</think> text file", {"--chat-template", own});
    EXPECT_EQ(result.out, " text file\n");
    EXPECT_EQ(result.err, " model is\n");
}

TEST_F(GptReasoning, CodeIsExtracted) {
    const ProcessResult code =
        answer("<think> model is</think> text", {"--extract", "code", "--reasoning", "hide"});
    EXPECT_EQ(code.exit_code, 1);
    EXPECT_EQ(code.out, "");
    expect_contains(code.err, "--extract code: the answer has no whole fenced code block");
    const ProcessResult value = answer(" text [111]", {"--extract", "json"});
    EXPECT_EQ(value.exit_code, 0) << value.err;
    EXPECT_EQ(value.out, "[111]\n");
    const json line = json::parse(answer(" text [111]", {"--extract", "json", "-f", "jsonl"}).out);
    EXPECT_EQ(line["text"], "[111]");
}

TEST_F(GptReasoning, APromptWithoutThePartIsNamed) {
    const ProcessResult lines = answer(" text", {"--extract", "json", "--input-format", "jsonl"},
                                       "{\"prompt\": \"a\", \"id\": \"x\"}\n{\"prompt\": \"b\"}\n");
    EXPECT_EQ(lines.exit_code, 1);
    expect_contains(lines.err, "stdin: line 1: --extract json: the answer has no valid JSON value");
    expect_contains(lines.err, "stdin: line 2: ");
    const json first = json::parse(lines_of(lines.out).at(0));
    EXPECT_EQ(first["id"], "x");
    EXPECT_EQ(first["error"]["code"], "nothing_extracted");
}

TEST_F(GptReasoning, WrongUsage) {
    const auto usage = [&](std::vector<std::string> arguments, const std::string& part) {
        const ProcessResult result = generate(arguments, "x");
        EXPECT_EQ(result.exit_code, 2) << part;
        expect_contains(result.err, part);
    };
    usage({"--reasoning", "hide"}, "--reasoning and --conversation need --chat");
    usage({"--chat", "--reasoning", "no"}, "expected one of show, hide, separate");
    usage({"--extract", "xml"}, "expected one of code, json");
    usage({"--extract", "code", "--echo"}, "--echo and --extract exclude each other");
    usage({"--chat", "--echo"}, "--echo is not for --chat");
}

}  // namespace
}  // namespace hark::test
