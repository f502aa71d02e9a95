// Conversations of gpt-generate --chat, in files and on a terminal, on the real binary.
#include <gtest/gtest.h>

#include "support/scripted_model.h"
#include "support/terminal.h"
#include "tools/gpt_generate.h"

namespace hark::test {
namespace {

class GptConversation : public testing::Test {
  protected:
    // The model's whole answer: line ends come in templates only.
    static constexpr const char* kAnswer = " text file";

    void SetUp() override { write_scripted_model(model(), "\n", kAnswer); }
    std::string model() const { return (folder_.path() / "model").string(); }
    std::string talk() const { return (folder_.path() / "talk.jsonl").string(); }
    ProcessResult run(std::vector<std::string> arguments, const std::string& input = "") const {
        arguments.insert(arguments.begin(),
                         {"--model", model(), "--threads", "1", "--chat", "--temperature", "0"});
        return run_tool("gpt-generate", arguments, input);
    }
    static std::string turn(const std::string& question, const std::string& answer = kAnswer) {
        return R"({"role":"user","content":")" + question + "\"}\n" +
               R"({"role":"assistant","content":")" + answer + "\"}\n";
    }

    TemporaryDirectory folder_;
};

TEST_F(GptConversation, IsAFileThatGrows) {
    const ProcessResult first = run({"--conversation", talk(), "-p", "One"});
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(first.out, " text file\n");
    EXPECT_EQ(read_text(talk()), turn("One"));
    EXPECT_EQ(run({"--conversation", talk()}, "Two\n").exit_code, 0);
    EXPECT_EQ(read_text(talk()), turn("One") + turn("Two"));
    const ProcessResult shown = run({"--conversation", talk(), "--show-prompt", "-p", "Three"});
    EXPECT_EQ(shown.out,
              "<|im_start|>user\nOne<|im_end|>\n<|im_start|>assistant\n text file<|im_end|>\n"
              "<|im_start|>user\nTwo<|im_end|>\n<|im_start|>assistant\n text file<|im_end|>\n"
              "<|im_start|>user\nThree<|im_end|>\n<|im_start|>assistant\n");
    EXPECT_EQ(read_text(talk()), turn("One") + turn("Two"));
}

// The keys of the turns before are not computed again.
TEST_F(GptConversation, LinesAreTurns) {
    const ProcessResult result =
        run({"--conversation", talk(), "--input-format", "lines", "-f", "jsonl"}, "One\n\nTwo\n");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(read_text(talk()), turn("One") + turn("Two"));
    const std::vector<std::string> lines = lines_of(result.out);
    ASSERT_EQ(lines.size(), 3u);
    const json first = json::parse(lines[0]), second = json::parse(lines[2]);
    EXPECT_EQ(first["cached_tokens"], 0);
    // All but the last token of the first answer, and its prompt.
    EXPECT_GE(second["cached_tokens"].get<int>(), first["prompt_tokens"].get<int>());
    EXPECT_LT(second["cached_tokens"], second["prompt_tokens"]);
}

// Each line is answered before the next one is read.
TEST_F(GptConversation, GuessedTokensChangeNoTurn) {
    for (const auto& flags : {std::vector<std::string>{"--prompt-lookup", "5"},
                              std::vector<std::string>{"--draft-model", model()}}) {
        std::vector<std::string> all = {"--conversation", talk(), "--input-format", "lines"};
        all.insert(all.end(), flags.begin(), flags.end());
        const ProcessResult result = run(all, "One\n\nTwo\n");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.out, " text file\n\n text file\n");
        EXPECT_EQ(read_text(talk()), turn("One") + turn("Two"));
        EXPECT_EQ(run({"--conversation", talk(), flags[0], flags[1], "-p", "Three"}).exit_code, 0);
        EXPECT_EQ(read_text(talk()), turn("One") + turn("Two") + turn("Three"));
        std::filesystem::remove(talk());
    }
}

TEST_F(GptConversation, AnAnswerThatFailsIsNotInTheFile) {
    std::string text;
    for (int i = 0; i < 600; ++i) text += " sea";
    const ProcessResult too_long = run({"--conversation", talk(), "-p", text});
    EXPECT_EQ(too_long.exit_code, 1);
    EXPECT_FALSE(std::filesystem::exists(talk()));
    write_text(talk(), "{\"role\":\"us");
    const ProcessResult torn = run({"--conversation", talk(), "-p", "One"});
    EXPECT_EQ(torn.exit_code, 1);
    expect_contains(torn.err, talk() + ": line 1: expected a message");
    EXPECT_EQ(torn.out, "");
    EXPECT_EQ(read_text(talk()), "{\"role\":\"us");
}

TEST_F(GptConversation, ReasoningIsNotRepeated) {
    write_scripted_model(model(), "\n", "<think> model is</think> text file");
    EXPECT_EQ(run({"--conversation", talk(), "-p", "One", "--reasoning", "show"}).exit_code, 0);
    EXPECT_EQ(read_text(talk()), turn("One"));
}

TEST_F(GptConversation, WrongUsage) {
    const auto usage = [&](std::vector<std::string> arguments, const std::string& part) {
        arguments.insert(arguments.end(), {"--conversation", talk()});
        const ProcessResult result = generate(arguments, "x");
        EXPECT_EQ(result.exit_code, 2) << part;
        expect_contains(result.err, part);
    };
    usage({"-p", "x"}, "--conversation need --chat");
    usage({"--chat", "--input-format", "jsonl"}, "--conversation is for --input-format text");
    usage({"--chat", "--n", "2"}, "one answer per message");
}

class GptTerminal : public GptConversation {
  protected:
    std::string command(const std::string& more = "") const {
        return "gpt-generate --model '" + model() + "' --threads 1 --chat --temperature 0 " + more;
    }
};

TEST_F(GptTerminal, IsAConversation) {
    Terminal terminal(command("--conversation '" + talk() + "'"));
    ASSERT_TRUE(terminal.wait_for("> "));
    terminal.type("One\n");
    ASSERT_TRUE(terminal.wait_for(" text file\r\n")) << terminal.bytes();
    ASSERT_TRUE(terminal.wait_for("> "));
    terminal.type("Tvo\x7f\x7fwo\n");  // edited
    ASSERT_TRUE(terminal.wait_for(" text file\r\n")) << terminal.bytes();
    ASSERT_TRUE(terminal.wait_for("> "));
    terminal.type("\x1b[A\x1b[A!\n");  // the first line again, from the history
    ASSERT_TRUE(terminal.wait_for(" text file\r\n")) << terminal.bytes();
    ASSERT_TRUE(terminal.wait_for("> "));
    terminal.type("\n");  // nothing
    terminal.type("a\\\nb\n");
    ASSERT_TRUE(terminal.wait_for(" text file\r\n> ")) << terminal.bytes();
    terminal.type("\x04");
    EXPECT_EQ(terminal.finish(), 0);
    EXPECT_EQ(read_text(talk()), turn("One") + turn("Two") + turn("One!") + turn("a\\nb"));
}

TEST_F(GptTerminal, CtrlCDropsALine) {
    Terminal terminal(command("--conversation '" + talk() + "'"));
    ASSERT_TRUE(terminal.wait_for("> "));
    terminal.type("not this");
    ASSERT_TRUE(terminal.wait_for("this"));
    terminal.type("\x03");
    ASSERT_TRUE(terminal.wait_for("> ")) << terminal.bytes();
    terminal.type("This\n");
    ASSERT_TRUE(terminal.wait_for(" text file\r\n> ")) << terminal.bytes();
    terminal.type("\x04");
    EXPECT_EQ(terminal.finish(), 0);
    EXPECT_EQ(read_text(talk()), turn("This"));
}

TEST_F(GptTerminal, CtrlCEndsAnAnswer) {
    for (const char* more : {"", " --prompt-lookup 3"}) {
        SCOPED_TRACE(more);
        // Without its end, the model says one token again and again.
        Terminal terminal(
            command("--conversation '" + talk() + "' --ignore-eos --max-tokens 400" + more));
        ASSERT_TRUE(terminal.wait_for("> "));
        terminal.type("One\n");
        ASSERT_TRUE(terminal.wait_for(" text")) << terminal.bytes();
        terminal.type("\x03");
        ASSERT_TRUE(terminal.wait_for("> ")) << terminal.bytes();
        terminal.type("\x04");
        EXPECT_EQ(terminal.finish(), 0);
        const std::string text = read_text(talk());
        EXPECT_EQ(text.rfind(R"({"role":"user","content":"One"})", 0), 0u) << text;
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
        std::filesystem::remove(talk());
    }
}

TEST_F(GptTerminal, ItsAnswersCanGoToAFile) {
    const std::string out = (folder_.path() / "out.txt").string();
    Terminal terminal(command("> '" + out + "'"));
    ASSERT_TRUE(terminal.wait_for("> "));
    terminal.type("One\n");
    ASSERT_TRUE(terminal.wait_for("> "));
    terminal.type("\x04");
    EXPECT_EQ(terminal.finish(), 0);
    EXPECT_EQ(read_text(out), " text file\n");
}

// Without --chat a prompt is expected from elsewhere, as before.
TEST_F(GptTerminal, WithoutChatItIsWrongUsage) {
    Terminal terminal("gpt-generate --model '" + model() + "'");
    EXPECT_EQ(terminal.finish(), 2);
    EXPECT_NE(terminal.bytes().find("stdin is a terminal"), std::string::npos);
}

}  // namespace
}  // namespace hark::test
