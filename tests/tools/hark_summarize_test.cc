// hark summarize, with a model that says what the test wants.
#include "support/scripted_model.h"
#include "tools/pipelines.h"

namespace hark::test {
namespace {

class HarkSummarize : public testing::Test {
  protected:
    void SetUp() override { write_scripted_model(folder_.path() / "model", "\n", " text file"); }
    // In the folder; the model's context has 512 tokens.
    ProcessResult summarize(const std::string& arguments) const {
        return run_shell("cd '" + folder_.path().string() +
                         "' && XDG_CACHE_HOME=\"$PWD/cache\" hark summarize " + arguments +
                         " -m ./model --whisper-model demo --chat --temperature 0 --max-tokens 20"
                         " --threads 1");
    }
    Folder folder_;
};

TEST_F(HarkSummarize, WritesMinutesNextToEachAndContinues) {
    folder_.copy("sea.wav", "in/sea.wav");
    fs::create_directories(folder_.path() / "in/more");
    write_text(folder_.path() / "in/more/talk.txt", "One.\nTwo.\n");
    const ProcessResult first = summarize("in");
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(first.out, "");
    EXPECT_EQ(first.err,
              "hark summarize: 1 of 2: in/sea.wav -> sea.minutes.md\n"
              "hark summarize: 2 of 2: in/more/talk.txt -> talk.minutes.md\n"
              "hark summarize: 2 written, 0 already there, 0 failed\n");
    EXPECT_EQ(folder_.text("in/sea.minutes.md"), " text file\n");
    EXPECT_EQ(folder_.text("in/more/talk.minutes.md"), " text file\n");
    const std::set<std::string> names = folder_.names();
    EXPECT_EQ(summarize("in").err, "hark summarize: 0 written, 2 already there, 0 failed\n");
    EXPECT_EQ(folder_.names(), names);
    // Minutes that are older than the recording may have been edited.
    run_shell("touch -d tomorrow '" + (folder_.path() / "in/sea.wav").string() + "'");
    const ProcessResult older = summarize("in");
    EXPECT_EQ(older.exit_code, 1);
    expect_contains(older.err,
                    "in/sea.wav: in/sea.minutes.md exists and is older; use --rewrite");
    EXPECT_EQ(summarize("in --rewrite --quiet").err,
              "hark summarize: 2 written, 0 already there, 0 failed\n");
}

// Killed at random moments, it has whole minutes or none, and continues to the same ones.
TEST_F(HarkSummarize, KillsLoseNothing) {
    const char* kills = std::getenv("HARK_ALL_RECORDINGS") == nullptr ? "3" : "20";
    fs::create_directories(folder_.path() / "in");
    for (const char* name : {"one", "two", "three"})
        write_text(folder_.path() / "in" / (name + std::string(".txt")), "One.\n");
    const ProcessResult killed =
        run_shell(concat("cd '", folder_.path().string(), "'; kills=", kills, R"(
run() { hark summarize in -m ./model --chat --temperature 0 --max-tokens 20 --threads 1; }
now() { echo $((${EPOCHREALTIME/./} / 1000)); }
export -f run
begun=$(now); run || exit; took=$(($(now) - begun)); RANDOM=5; mv in/one.minutes.md expected
for ((n = 0; n < kills; ++n)); do
    rm -f in/*.minutes.md
    setsid bash -c run & leader=$!
    printf -v moment %04d $((RANDOM * took / 32768)); sleep ${moment:0:-3}.${moment: -3}
    kill -KILL -- -$leader; wait $leader
    written=(in/*.minutes.md)
    stat -c '%n %Y %i' "${written[@]}" > before 2> /dev/null
    run || exit 2
    for name in one two three; do cmp expected in/$name.minutes.md || exit 3; done
    stat -c '%n %Y %i' "${written[@]}" 2> /dev/null | cmp - before || exit 4 # not written twice
done
)"));
    EXPECT_EQ(killed.exit_code, 0) << killed.err;
}

TEST_F(HarkSummarize, TakesATranscriptInPlaceOfARecording) {
    write_text(folder_.path() / "talk.wav", "no recording");
    write_text(folder_.path() / "talk.txt", "One.\n");
    const ProcessResult result = summarize(". --whisper-model none");
    EXPECT_EQ(result.err,
              "hark summarize: 1 of 1: ./talk.wav -> talk.minutes.md\n"
              "hark summarize: 1 written, 0 already there, 0 failed\n");
    EXPECT_EQ(folder_.text("talk.minutes.md"), " text file\n");
    // A pattern has both, and a folder may have labels for Audacity.
    write_text(folder_.path() / "talk.audacity.txt", "0.0\t1.0\tOne.\n");
    for (const char* all : {"talk.wav talk.txt", "."})
        EXPECT_EQ(summarize(all + std::string(" --rewrite -q")).err,
                  "hark summarize: 1 written, 0 already there, 0 failed\n");
}

TEST_F(HarkSummarize, ATextThatDoesNotFitGoesInParts) {
    std::string text;
    for (int i = 0; i < 150; ++i) text += "The recording is one text of the model.\n";
    write_text(folder_.path() / "talk.txt", text);
    const ProcessResult result = summarize("talk.txt");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "talk.txt: ");
    expect_contains(result.err, "tokens, do not fit the context of 512: ");
    EXPECT_EQ(folder_.text("talk.minutes.md"), " text file\n");
    std::string line;
    for (int i = 0; i < 600; ++i) line += "model ";
    write_text(folder_.path() / "line.txt", line + "\n");
    const ProcessResult whole = summarize("line.txt");
    EXPECT_EQ(whole.exit_code, 1);
    expect_contains(whole.err, "line.txt: the prompt's ");
}

TEST_F(HarkSummarize, WhatFailsIsNamedAndTheRestIsDone) {
    write_text(folder_.path() / "a.wav", "no recording");
    write_text(folder_.path() / "b.txt", "One.\n");
    write_text(folder_.path() / "c.txt", "\n");
    const ProcessResult result = summarize(".");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "a.wav: ");
    expect_contains(result.err, "c.txt: nothing is said");
    expect_contains(result.err, "1 written, 0 already there, 2 failed\n");
    EXPECT_FALSE(fs::exists(folder_.path() / "a.minutes.md"));
}

TEST_F(HarkSummarize, AFolderThatCannotBeWrittenIsNamed) {
    fs::create_directories(folder_.path() / "in");
    write_text(folder_.path() / "in/b.txt", "One.\n");
    fs::permissions(folder_.path() / "in", fs::perms::owner_read | fs::perms::owner_exec);
    const ProcessResult result =
        run_shell("cd '" + folder_.path().string() + "' && " + kWithoutRights +
                  "hark summarize in -m ./model --max-tokens 20 --threads 1");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err,
              "hark summarize: in: cannot write into this folder\n"
              "hark summarize: 0 written, 0 already there, 1 failed\n");
    fs::permissions(folder_.path() / "in", fs::perms::owner_all);
}

TEST_F(HarkSummarize, SaysWhyItCannotWrite) {
    write_text(folder_.path() / "talk.txt", "One.\n");
    fs::create_directories(folder_.path() / "talk.minutes.md");
    const ProcessResult result = summarize("talk.txt --rewrite");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "talk.minutes.md: cannot write: cannot overwrite directory");
}

TEST_F(HarkSummarize, ShowsItsPipes) {
    folder_.copy("sea.wav", "sea.wav");
    write_text(folder_.path() / "b.txt", "One.\n");
    const ProcessResult shown = summarize(". --show-pipe --prompt 'In short: {}'");
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_EQ(std::count(shown.out.begin(), shown.out.end(), '\n'), 2) << shown.out;
    EXPECT_EQ(run_shell("cd '" + folder_.path().string() + "' && " + shown.out).exit_code, 0);
    EXPECT_EQ(folder_.text("sea.minutes.md"), " text file\n");
    EXPECT_EQ(folder_.text("b.minutes.md"), " text file\n");
}

TEST_F(HarkSummarize, WrongUsage) {
    EXPECT_EQ(summarize("").exit_code, 2);
    EXPECT_EQ(summarize("x --n 2").exit_code, 2);
    EXPECT_EQ(summarize("x --promt y").exit_code, 2);
    // What gpt-generate refuses is said before anything is transcribed.
    folder_.copy("sea.wav", "sea.wav");
    for (const auto& [options, exit_code] :
         {std::pair{"-m demo --temperature warm", 2}, {"-m nosuch", 1}, {"-m demo --chat", 1}}) {
        const ProcessResult result =
            run_shell("cd '" + folder_.path().string() + "' && hark summarize sea.wav " + options);
        EXPECT_EQ(result.exit_code, exit_code) << options;
        EXPECT_EQ(result.err.rfind("gpt-generate: ", 0), 0u) << result.err;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
    const ProcessResult empty = summarize("model");
    EXPECT_EQ(empty.exit_code, 1);
    expect_contains(empty.err, "model: found no recordings and no transcripts");
}

}  // namespace
}  // namespace hark::test
