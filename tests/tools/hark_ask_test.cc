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
        return shell(kAsk + arguments + kOptions);
    }
    // Commands in the folder, where tools/ is first on the PATH.
    ProcessResult shell(const std::string& commands) const {
        return run_shell("cd '" + folder_.path().string() +
                         "' && export XDG_CACHE_HOME=\"$PWD/cache\" PATH=\"$PWD/tools:$PATH\"\n" +
                         commands);
    }
    void write_tool(const std::string& name, const std::string& commands) const {
        fs::create_directories(folder_.path() / "tools");
        write_text(folder_.path() / "tools" / name,
                   "#!/bin/bash\nPATH=\"${PATH#*:}\"\n" + commands);
        fs::permissions(folder_.path() / "tools" / name, fs::perms::owner_all);
    }
    bool keeps_nothing() const { return fs::is_empty(folder_.path() / "cache/hark/answers"); }
    // Runs `hark ask ARGUMENTS`, which a tool kills; $(cat pid) is its process.
    void expect_killed(const std::string& arguments) const {
        const ProcessResult result =
            shell(kAsk + arguments + kOptions + " & echo $! > pid; wait $!");
        EXPECT_EQ(result.exit_code, 137) << result.err;
        EXPECT_EQ(result.out, "");
        EXPECT_FALSE(keeps_nothing());
    }
    void write_talk(int sentences) const {
        std::string text;
        for (int i = 0; i < sentences; ++i) text += "The recording is one text of the model. ";
        write_text(folder_.path() / "talk.txt", text + "\n");
    }
    // `hark` itself would put its own folder first.
    const std::string kAsk = "'" + (source_dir() / "pipelines/ask.sh").string() + "' ";
    static constexpr const char* kOptions =
        " -m ./model --whisper-model demo --temperature 0 --max-tokens 20 --threads 1";
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

TEST_F(HarkAskLong, PartsThatAreAnsweredAreNotAskedAgain) {
    write_talk(300);
    const std::string all =
        "[[ \"$*\" = *' lines'* ]] || exec gpt-generate \"$@\"\n"
        "echo \"$*\" > options; tee asked | gpt-generate \"$@\"";
    write_tool("gpt-generate", all);
    const ProcessResult whole = ask("talk.txt 'What is it?' --chat --seed 7");
    EXPECT_EQ(whole.out, " text file\n") << whole.err;
    EXPECT_TRUE(keeps_nothing());
    const std::string parts = folder_.text("asked");
    ASSERT_GE(std::count(parts.begin(), parts.end(), '\n'), 4);

    write_tool("gpt-generate", all + " | { head -n 2; kill -9 $(cat pid); }");
    expect_killed("talk.txt 'What is it?' --chat --seed 7");
    write_tool("gpt-generate", all);
    const ProcessResult other = ask("talk.txt 'What else is it?' --chat --seed 7");
    EXPECT_EQ(other.err.find("answered already"), std::string::npos) << other.err;
    const ProcessResult resumed = ask("talk.txt 'What is it?' --chat --seed 7");
    EXPECT_EQ(resumed.out, whole.out);
    expect_contains(resumed.err, "hark ask: 2 of them are answered already\n");
    expect_contains(folder_.text("options"), "--seed 9 ");
    EXPECT_EQ(folder_.text("asked"), parts.substr(parts.find('\n', parts.find('\n') + 1) + 1));
    EXPECT_TRUE(keeps_nothing());
}

TEST_F(HarkAskLong, ARecordingIsNotTranscribedAgainAfterAStop) {
    folder_.copy("sea.wav", "sea.wav");
    write_tool("gpt-generate",
               "[[ \"$*\" = *--show-prompt* || \"$*\" != *'Who?'* ]] && exec "
               "gpt-generate \"$@\"\nkill -9 $(cat pid)\n");
    expect_killed("sea.wav 'Who?' --chat --cite");
    write_tool("gpt-generate", "exec gpt-generate \"$@\"\n");
    write_tool("whisper-transcribe",
               "[[ \"$*\" = *--check* ]] || touch transcribed\nexec whisper-transcribe \"$@\"\n");
    const ProcessResult result = ask("sea.wav 'Who?' --chat --cite");
    EXPECT_EQ(result.out, " text file\n") << result.err;
    EXPECT_FALSE(fs::exists(folder_.path() / "transcribed"));
    EXPECT_TRUE(keeps_nothing());
    EXPECT_EQ(ask("sea.wav 'Who?' --chat --cite").out, " text file\n");
    EXPECT_TRUE(fs::exists(folder_.path() / "transcribed"));
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
