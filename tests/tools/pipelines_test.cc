// pipelines/transcribe.sh, batch.sh and ask.sh, with the real tools first on the PATH.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "support/process.h"

namespace hark::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSea = "He lived with his mother in a small house by the sea.";
constexpr const char* kKey = "key to the door";

// A folder of recordings that is removed in the end.
class Folder {
  public:
    // Copies a recording of samples/.
    void copy(const std::string& sample, const std::string& name) {
        fs::create_directories((path() / name).parent_path());
        fs::copy_file(samples_dir() / sample, path() / name);
    }
    const fs::path& path() const { return directory_.path(); }
    std::string text(const std::string& name) const { return read_text(path() / name); }
    // The names of everything in it, hidden files included.
    std::set<std::string> names() const {
        std::set<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator(path()))
            if (entry.is_regular_file()) names.insert(fs::relative(entry, path()).string());
        return names;
    }

  private:
    TemporaryDirectory directory_;
};

ProcessResult script(const std::string& name, const std::string& arguments) {
    return run_shell("'" + (source_dir() / "pipelines" / name).string() + "' " + arguments);
}

ProcessResult transcribe(const fs::path& folder, const std::string& options = "--model demo") {
    return script("transcribe.sh", "'" + folder.string() + "' " + options + " --threads 1");
}

void expect_contains(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(TranscribeScript, WritesBesideEachRecordingAndSkipsWhatIsThere) {
    Folder folder;
    folder.copy("sea.wav", "one.wav");
    folder.copy("key.wav", "a folder/two 'quoted'.WAV");
    write_text(folder.path() / "notes.doc", "no recording");
    const ProcessResult first = transcribe(folder.path());
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(first.out, "");
    expect_contains(first.err, "2 transcribed, 0 already there, 0 failed");
    EXPECT_EQ(folder.names(),
              (std::set<std::string>{"one.wav", "one.srt", "one.txt", "notes.doc",
                                     "a folder/two 'quoted'.WAV", "a folder/two 'quoted'.srt",
                                     "a folder/two 'quoted'.txt"}));
    EXPECT_EQ(folder.text("one.txt"), std::string(kSea) + "\n");
    expect_contains(folder.text("one.srt"), "00:00:00,000 --> ");
    expect_contains(folder.text("a folder/two 'quoted'.txt"), kKey);

    write_text(folder.path() / "one.txt", "corrected by hand");
    folder.copy("key.wav", "three.wav");
    const ProcessResult again = transcribe(folder.path());
    EXPECT_EQ(again.exit_code, 0) << again.err;
    expect_contains(again.err, "1 transcribed, 2 already there, 0 failed");
    EXPECT_EQ(folder.text("one.txt"), "corrected by hand");
    expect_contains(folder.text("three.txt"), kKey);
    // Half of what belongs to a recording is not enough.
    fs::remove(folder.path() / "one.srt");
    expect_contains(transcribe(folder.path()).err, "1 transcribed, 2 already there");
    EXPECT_EQ(folder.text("one.txt"), std::string(kSea) + "\n");
}

TEST(TranscribeScript, NamesThatCollideKeepTheirEnding) {
    Folder folder;
    folder.copy("sea.wav", "a.wav");
    folder.copy("room.m4a", "a.m4a");
    folder.copy("key.wav", "b.wav");
    folder.copy("family.flac", "b.wav.flac");  // without its ending it is another recording
    const ProcessResult result = transcribe(folder.path());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(folder.names(),
              (std::set<std::string>{"a.m4a", "a.m4a.srt", "a.m4a.txt", "a.wav", "a.wav.srt",
                                     "a.wav.txt", "b.srt", "b.txt", "b.wav", "b.wav.flac",
                                     "b.wav.flac.srt", "b.wav.flac.txt"}));
    EXPECT_EQ(folder.text("a.wav.txt"), std::string(kSea) + "\n");
    EXPECT_NE(folder.text("a.m4a.txt"), folder.text("a.wav.txt"));
    expect_contains(folder.text("b.txt"), kKey);
    expect_contains(transcribe(folder.path()).err, "0 transcribed, 4 already there");
}

TEST(TranscribeScript, ABrokenRecordingIsListedAndTheOthersAreDone) {
    Folder folder;
    write_text(folder.path() / "bad.mp3", "this is no audio at all");
    folder.copy("key.wav", "good.wav");
    for (const char* counts :
         {"1 transcribed, 0 already there, 1 failed", "0 transcribed, 1 already there, 1 failed"}) {
        const ProcessResult result = transcribe(folder.path());
        EXPECT_EQ(result.exit_code, 1);
        expect_contains(result.err, counts);
        EXPECT_TRUE(result.err.ends_with("failed: " + (folder.path() / "bad.mp3").string() + "\n"))
            << result.err;
        EXPECT_EQ(folder.names(),
                  (std::set<std::string>{"bad.mp3", "good.srt", "good.txt", "good.wav"}));
    }
}

TEST(TranscribeScript, WhatIsWrongForAllEndsItAtOnce) {
    Folder folder;
    folder.copy("key.wav", "key.wav");
    folder.copy("sea.wav", "sea.wav");
    const struct {
        const char* options;
        int exit_code;
        const char* message;
    } kWrong[] = {{"--model demo --langauge en", 2, "--langauge"},
                  {"--model demo --best-of 0", 2, "--best-of"},
                  {"--model demo --language Klingon", 1, "'Klingon'"},
                  {"--model none", 1, "'none'"},
                  {"", 1, "--model demo"}};
    for (const auto& wrong : kWrong) {
        // A home without a model of the user's.
        const ProcessResult result =
            run_shell("HOME='" + folder.path().string() + "' '" +
                      (source_dir() / "pipelines/transcribe.sh").string() + "' '" +
                      folder.path().string() + "' " + wrong.options);
        EXPECT_EQ(result.exit_code, wrong.exit_code) << wrong.options << result.err;
        EXPECT_EQ(result.err.rfind("whisper-transcribe: ", 0), 0u) << result.err;
        expect_contains(result.err, wrong.message);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
    EXPECT_EQ(folder.names(), (std::set<std::string>{"key.wav", "sea.wav"}));
    EXPECT_EQ(script("transcribe.sh", "").exit_code, 2);
    EXPECT_EQ(script("transcribe.sh", "--model demo").exit_code, 2);
    EXPECT_EQ(transcribe(folder.path() / "none").exit_code, 1);
    EXPECT_EQ(transcribe(folder.path() / "key.wav").exit_code, 1);
}

constexpr const char* kDemo = " -- --model demo --threads 1";

// pipelines/batch.sh in a folder with `in`, which is transcribed to `out`.
class BatchScript : public testing::Test {
  protected:
    // In the folder, tools of its own first on the PATH.
    ProcessResult shell(const std::string& command) {
        return run_shell("cd '" + folder_.path().string() +
                         "'; PATH=\"$PWD/tools:$PATH\"; batch='" +
                         (source_dir() / "pipelines/batch.sh").string() + "'; " + command);
    }
    ProcessResult batch(const std::string& arguments) { return shell("\"$batch\" " + arguments); }
    // A tool in bash; those that it calls itself are the real ones.
    void tool(const std::string& name, const std::string& text) {
        fs::create_directories(folder_.path() / "tools");
        const fs::path path = folder_.path() / "tools" / name;
        write_text(path, "#!/bin/bash\nPATH=\"${PATH#*:}\"\n" + text);
        fs::permissions(path, fs::perms::owner_all);
    }
    // One that hands on its first recording and then hangs, until there is a file `go`.
    void hanging_audio_decode() {
        tool("audio-decode",
             "[ ! -e go ] || exec audio-decode \"$@\"\n"
             "audio-decode \"$1\"\necho $$ > hangs\nexec sleep 60\n");
    }
    // What is in `out`.
    std::set<std::string> written() {
        std::set<std::string> names;
        for (const std::string& name : folder_.names())
            if (name.starts_with("out/")) names.insert(name.substr(4));
        return names;
    }
    static std::set<std::string> with_lock(std::set<std::string> names) {
        names.insert(".hark/lock");
        names.insert("failed.tsv");
        return names;
    }

    Folder folder_;
};

TEST_F(BatchScript, WritesWhatIsMissingAndListsWhatFails) {
    folder_.copy("sea.wav", "in/sea.wav");
    folder_.copy("key.wav", "in/a folder/two 'quoted'.WAV");
    folder_.copy("road.wav", "in/a folder/sea.wav");
    write_text(folder_.path() / "in/bad.mp3", "this is no audio at all");
    const std::string arguments = "--output out --format text,jsonl --shard 2 --price 2 in";
    ProcessResult result = batch(arguments + kDemo);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    expect_contains(result.err, "3 transcribed, 0 already there, 1 failed, 0 left");
    const size_t rate = result.err.find(" hours of audio in ");
    ASSERT_NE(rate, std::string::npos) << result.err;
    double wall = 0, an_hour = 0, a_dollar = 0;
    ASSERT_EQ(std::sscanf(result.err.c_str() + rate,
                          " hours of audio in %lf hours: %lf an hour, %lf a dollar", &wall,
                          &an_hour, &a_dollar),
              3)
        << result.err;
    EXPECT_NEAR(a_dollar, an_hour / 2, 0.01 * an_hour);
    // sea, key and road are 2.89, 2.39 and 2.77 s long; three digits are printed.
    EXPECT_NEAR(wall * an_hour * 3600, 8.05, 0.15);
    const std::set<std::string> all =
        with_lock({"sea.txt", "sea.jsonl", "a folder/sea.txt", "a folder/sea.jsonl",
                   "a folder/two 'quoted'.txt", "a folder/two 'quoted'.jsonl"});
    EXPECT_EQ(written(), all);
    EXPECT_EQ(folder_.text("out/sea.txt"), std::string(kSea) + "\n");
    expect_contains(folder_.text("out/a folder/two 'quoted'.txt"), kKey);
    expect_contains(folder_.text("out/a folder/sea.jsonl"), "\"source\":\"in/a folder/sea.wav\"");
    const std::string failed = folder_.text("out/failed.tsv");
    EXPECT_EQ(failed.rfind("in/bad.mp3\texpected audio, ", 0), 0u) << failed;
    EXPECT_EQ(std::count(failed.begin(), failed.end(), '\n'), 1) << failed;

    // Nothing to do: no tool runs, and the failure is told of again.
    tool("audio-decode", "echo audio-decode ran >&2; exec audio-decode \"$@\"");
    tool("mel", "echo mel ran >&2; exec mel \"$@\"");
    result = batch(arguments + " -- --no-such-flag");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "0 transcribed, 3 already there, 1 failed, 0 left");
    EXPECT_EQ(result.err.find(" ran"), std::string::npos) << result.err;
    EXPECT_EQ(folder_.text("out/failed.tsv"), failed);

    // --retry, a failed recording that was mended, one that is newer than its transcripts.
    expect_contains(batch(arguments + " --retry" + kDemo).err,
                    "0 transcribed, 3 already there, 1 ");
    shell("cp in/sea.wav in/bad.mp3; touch -d '1 hour' in/bad.mp3 'in/a folder/sea.wav'");
    result = batch(arguments + kDemo);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "2 transcribed, 2 already there, 0 failed, 0 left");
    EXPECT_EQ(folder_.text("out/failed.tsv"), "");
    EXPECT_EQ(folder_.text("out/bad.txt"), std::string(kSea) + "\n");
}

TEST_F(BatchScript, TakesAListAndGoesOnWhenAToolIsKilled) {
    for (const char* name : {"sea.wav", "key.wav", "road.wav"}) folder_.copy(name, name);
    folder_.copy("room.m4a", "in/-key.m4a");
    hanging_audio_decode();
    const ProcessResult result =
        shell("printf 'sea.wav\\nkey.wav\\n\\nin' | \"$batch\" --output out --list - road.wav" +
              std::string(kDemo) +
              " & until [ -e out/road.txt ] && [ -e hangs ]; do sleep 0.05; done\n"
              "touch go; kill -9 $(cat hangs); wait $!");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "the pipeline broke");
    expect_contains(result.err, "sea.wav alone");
    expect_contains(result.err, "4 transcribed, 0 already there, 0 failed, 0 left");
    EXPECT_EQ(written(), with_lock({"sea.srt", "sea.txt", "key.srt", "key.txt", "road.srt",
                                    "road.txt", "-key.srt", "-key.txt"}));
    EXPECT_EQ(folder_.text("out/sea.txt"), std::string(kSea) + "\n");
    expect_contains(folder_.text("out/key.txt"), kKey);
}

TEST_F(BatchScript, GoesOnWhereItWasStoppedOrKilled) {
    folder_.copy("key.wav", "in/a.wav");
    folder_.copy("story.mp3", "in/b.mp3");
    folder_.copy("sea.wav", "in/c.wav");
    const std::string run = "\"$batch\" --output out in" + std::string(kDemo);
    // Stopped in the middle of a recording, whose transcripts are begun.
    ProcessResult result =
        shell(run +
              " --beam-size 8 & until ls out/.hark/work.*/.b.txt.* >& /dev/null; do sleep 0.02; "
              "done; kill -TERM $!; wait $!");
    EXPECT_EQ(result.exit_code, 143) << result.err;
    expect_contains(result.err, "1 transcribed, 0 already there, 0 failed, 2 left");
    EXPECT_EQ(written(), with_lock({"a.srt", "a.txt"}));

    // Killed, its pipeline still there: it comes to nothing.
    folder_.copy("road.wav", "in/aa.wav");
    hanging_audio_decode();
    result = shell(run +
                   " & until [ -e out/aa.txt ] && [ -e hangs ]; do sleep 0.05; done\n"
                   "kill -9 $!; wait $!; echo $?; kill $(cat hangs)");
    EXPECT_EQ(result.out, "137\n");
    const std::set<std::string> killed = written();
    EXPECT_TRUE(killed.contains("aa.srt") && !killed.contains("b.srt") &&
                !killed.contains("b.txt"));

    write_text(folder_.path() / "go", "");
    result = shell(run);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "2 transcribed, 2 already there, 0 failed, 0 left");
    EXPECT_EQ(written(), with_lock({"a.srt", "a.txt", "aa.srt", "aa.txt", "b.srt", "b.txt", "c.srt",
                                    "c.txt"}));
    EXPECT_EQ(folder_.text("out/c.txt"), std::string(kSea) + "\n");
    // One at a time.
    result = shell("exec 9> out/.hark/lock; flock 9; " + run);
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "another batch.sh");
}

TEST_F(BatchScript, ARecordingThatBreaksThePipelineFailsButNotAllDoWhenTheToolsBreak) {
    folder_.copy("key.wav", "in/key.wav");
    // A model of 128 mels, which takes silence only.
    tool("mel", "cat > /dev/null; [[ \"$*\" != *raw* ]] || echo silence; echo \"${@: -2}\"");
    tool("whisper-transcribe",
         "said=\"$(cat)\"\n[[ \"$said\" = *'--mels 128' ]] || { echo use mel --mels 128 >&2; exit "
         "1; }\n"
         "[[ \"$said\" = silence* ]] || kill -9 $$\n");
    ProcessResult result = batch("--output out in");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "0 transcribed, 0 already there, 1 failed, 0 left");
    EXPECT_EQ(folder_.text("out/failed.tsv"),
              "in/key.wav\tbroke the pipeline (exit statuses of audio-decode, mel, "
              "whisper-transcribe: 0 0 137)\n");

    tool("whisper-transcribe",
         "cat > /dev/null; [ ! -e used ] || { echo no GPU >&2; exit 1; }\n"
         "touch used");
    result = batch("--output out --retry in");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "no GPU");
    expect_contains(result.err, "0 transcribed, 0 already there, 0 failed, 1 left");
    EXPECT_EQ(folder_.text("out/failed.tsv"), "");
}

TEST_F(BatchScript, RefusesWhatIsWrongBeforeAnythingRuns) {
    folder_.copy("key.wav", "in/key.wav");
    folder_.copy("key.wav", "more/key.wav");
    folder_.copy("key.wav", "other/key.mp3");
    folder_.copy("key.wav", "lines/a\nb.wav");
    folder_.copy("key.wav", "failed/failed.wav");
    const struct {
        const char* arguments;
        int exit_code;
        const char* message;
    } kWrong[] = {{"", 2, "--output DIR"},
                  {"--output out", 2, "--list FILE"},
                  {"--output out in --model demo", 2, "'--model'"},
                  {"--output out --price free in", 2, "'free'"},
                  {"--output out --price 0 in", 2, "--price"},
                  {"--output out --shard 0 in", 2, "--shard"},
                  {"--output out --format doc in", 2, "'doc'"},
                  {"in --output", 2, "--output"},
                  {"--output out --list none", 1, "none"},
                  {"--output out lines", 1, "newline"},
                  {"--output out in/$'\\xff'.wav", 1, "UTF-8"},
                  {"--output out in more", 1, "would write out/key.wav.srt, as would in/key.wav"},
                  {"--output out --format tsv failed", 1, "failed.tsv"}};
    for (const auto& wrong : kWrong) {
        const ProcessResult result = batch(wrong.arguments);
        EXPECT_EQ(result.exit_code, wrong.exit_code) << wrong.arguments << result.err;
        expect_contains(result.err, wrong.message);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
    EXPECT_EQ(written(), (std::set<std::string>{}));
    // The transcriber's own.
    EXPECT_EQ(batch("--output out in -- --model demo --langauge en").exit_code, 2);
    EXPECT_EQ(batch("--output out in -- --model none").exit_code, 1);
    EXPECT_EQ(written(), (std::set<std::string>{".hark/lock"}));
    // What differs in its ending keeps it.
    EXPECT_EQ(batch("--output out --format srt in other" + std::string(kDemo)).exit_code, 0);
    EXPECT_EQ(written(), with_lock({"key.wav.srt", "key.mp3.srt"}));
    expect_contains(batch("--help").out, "--retry");
}

TEST(AskScript, PutsWhatWasSaidIntoTheTemplate) {
    const std::string sea = "'" + (samples_dir() / "sea.wav").string() + "'";
    const ProcessResult asked = script("ask.sh", sea + " 'They said: {} And then'");
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
    EXPECT_EQ(asked.err, "");
    const std::string prompt = std::string("They said: ") + kSea + "  And then";
    EXPECT_EQ(asked.out, run_tool("gpt-generate", {"--model", "demo"}, prompt).out);
}

TEST(AskScript, SaysWhatIsWrong) {
    const std::string sea = "'" + (samples_dir() / "sea.wav").string() + "'";
    for (const std::string& arguments :
         std::vector<std::string>{"", "--model", sea + " {} --model", sea + " {} demo demo more",
                                  sea + " 'no place for it'"}) {
        const ProcessResult result = script("ask.sh", arguments);
        EXPECT_EQ(result.exit_code, 2) << arguments;
        EXPECT_EQ(result.out, "");
        EXPECT_NE(result.err, "");
    }
    const ProcessResult missing = script("ask.sh", "./none.wav");
    EXPECT_EQ(missing.exit_code, 1);
    expect_contains(missing.err, "./none.wav");
    EXPECT_EQ(script("ask.sh", sea + " {} none").exit_code, 1);
    EXPECT_EQ(script("ask.sh", sea + " {} demo none").exit_code, 1);
}

TEST(Scripts, ShowTheirHelp) {
    for (const char* name : {"ask.sh", "batch.sh", "demo.sh", "plot-run.sh", "plot-transcript.sh",
                             "transcribe.sh", "verify-official.sh"}) {
        const ProcessResult shown = script(name, "--help");
        EXPECT_EQ(shown.exit_code, 0) << name << shown.err;
        expect_contains(shown.out, std::string("usage: pipelines/") + name);
        EXPECT_EQ(shown.err, "") << name;
    }
}

TEST(Scripts, TakeTheToolsOnThePathBeforeThoseOfTheBuild) {
    const TemporaryDirectory directory;
    write_text(directory.path() / "gpt-generate", "#!/bin/sh\necho \"$@\"\n");
    fs::permissions(directory.path() / "gpt-generate", fs::perms::owner_all);
    const auto ask = [&](const std::string& arguments) {
        return run_shell("PATH='" + directory.path().string() + "':$PATH '" +
                         (source_dir() / "pipelines/ask.sh").string() + "' '" +
                         (samples_dir() / "sea.wav").string() + "' " + arguments);
    };
    EXPECT_EQ(ask("'a {} b' demo mine").out, "--model mine --prompt a {} b\n");
    EXPECT_EQ(ask("").out, "--model demo --prompt {}\n");  // the defaults
}

}  // namespace
}  // namespace hark::test
