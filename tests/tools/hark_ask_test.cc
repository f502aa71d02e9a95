// hark ask about long texts and with times, with a model that says what the test wants.
#include "support/scripted_model.h"
#include "tools/pipelines.h"

namespace hark::test {
namespace {

class HarkAskLong : public testing::Test {
  protected:
    void SetUp() override { write_scripted_model(folder_.path() / "model", "\n", " text file"); }
    // In the folder; the model's context has 512 tokens.
    ProcessResult ask(const std::string& arguments) const {
        return run_shell("cd '" + folder_.path().string() + "' && hark ask " + arguments +
                         " -m ./model --whisper-model demo --temperature 0 --max-tokens 20"
                         " --threads 1");
    }
    void write_talk(int sentences) const {
        std::string text;
        for (int i = 0; i < sentences; ++i) text += "The recording is one text of the model. ";
        write_text(folder_.path() / "talk.txt", text + "\n");
    }
    Folder folder_;
};

TEST_F(HarkAskLong, ATextThatDoesNotFitIsAskedInParts) {
    write_talk(150);
    const ProcessResult result = ask("talk.txt 'What is it?' --chat");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, " text file\n");
    EXPECT_TRUE(result.err.starts_with("hark ask: talk.txt: text and ")) << result.err;
    expect_contains(result.err, "tokens, do not fit the context of 512: ");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST_F(HarkAskLong, WhatHasNoPartsIsNamed) {
    write_talk(150);
    for (const char* options : {"--chat --format jsonl", "--chat --n 2"}) {
        const ProcessResult result = ask("talk.txt 'What is it?' " + std::string(options));
        EXPECT_EQ(result.exit_code, 1) << options;
        expect_contains(result.err, "do not fit the context (got ");
    }
    std::string line;
    for (int i = 0; i < 600; ++i) line += "model ";
    write_text(folder_.path() / "talk.txt", line + "\n");
    const ProcessResult whole = ask("talk.txt 'What is it?' --chat");
    EXPECT_EQ(whole.exit_code, 1);
    EXPECT_EQ(whole.out, "");
    expect_contains(whole.err, "do not fit the context (got ");
}

TEST_F(HarkAskLong, ATranscriptIsReadAsItIs) {
    write_talk(2);
    const ProcessResult shown = ask("talk.txt 'What?' --chat --show-prompt");
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    expect_contains(shown.out, "one text of the model. The recording is one");
    expect_contains(shown.out, "What?");
    const ProcessResult pipe = ask("talk.txt 'What?' --chat --show-prompt --show-pipe");
    EXPECT_EQ(run_shell("cd '" + folder_.path().string() + "' && " + pipe.out).out, shown.out);
}

TEST_F(HarkAskLong, SegmentsHaveTheirTimes) {
    folder_.copy("sea.wav", "sea.wav");
    const ProcessResult shown = ask("sea.wav 'When?' --cite --chat --show-prompt");
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    expect_contains(shown.out, "[00:00] He lived with his mother");
    expect_contains(shown.out, "When? Give the times in brackets at which it is said.");
    const ProcessResult pipe = ask("sea.wav 'When?' --cite --chat --show-prompt --show-pipe");
    EXPECT_EQ(run_shell("cd '" + folder_.path().string() + "' && " + pipe.out).out, shown.out);
}

TEST_F(HarkAskLong, WrongUsage) {
    write_talk(1);
    EXPECT_EQ(ask("talk.txt 'When?' --cite --chat").exit_code, 2);
    const ProcessResult none = ask("none.txt 'What?' --chat");
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_EQ(none.err, "hark ask: none.txt: cannot read it\n");
    expect_contains(run_shell("hark ask talk.txt What? --server unix:/x").err,
                    "--server: needs a recording, got talk.txt");
}

}  // namespace
}  // namespace hark::test
