// hark batch: pipelines/batch.sh, with the real tools first on the PATH.
#include <algorithm>
#include <cstdio>

#include "tools/pipelines.h"

namespace hark::test {
namespace {

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
        write_text(path,
                   "#!/bin/bash\nPATH=\"${PATH#*:}\"\n"
                   "[ \"$1\" != --help-as ] || exec \"${0##*/}\" \"$@\"\n" +
                       text);
        fs::permissions(path, fs::perms::owner_all);
    }
    // One that hands on its first recording and then hangs, until there is a file `go`. The check
    // of the options before the run reads /dev/null, and passes.
    void hanging_audio_decode() {
        tool("audio-decode",
             "[[ ! -e go && \"$*\" != */dev/null ]] || exec audio-decode \"$@\"\n"
             "[ \"$1\" != --metrics ] || shift 2\n"
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
        names.insert(".hark/seconds");
        names.insert(".hark/written");
        names.insert("failed.tsv");
        return names;
    }

    Folder folder_;
};

TEST_F(BatchScript, MakesNoFolderForOptionsThatAreWrong) {
    folder_.copy("sea.wav", "in/sea.wav");
    for (const char* wrong : {"--model none", "--model demo --beam-size x"}) {
        EXPECT_NE(batch(std::string("--output-dir out in ") + wrong).exit_code, 0) << wrong;
        EXPECT_EQ(folder_.names(), (std::set<std::string>{"in/sea.wav"})) << wrong;
        EXPECT_FALSE(fs::exists(folder_.path() / "out")) << wrong;
    }
}

TEST_F(BatchScript, PrivateIsWhateverItMakes) {
    folder_.copy("sea.wav", "in/a/sea.wav");
    write_text(folder_.path() / "in/broken.wav", "no audio");
    const ProcessResult result = batch("--model demo --private --output-dir out in");
    EXPECT_EQ(result.exit_code, 1) << result.err;
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "out")) {
        const fs::perms mode = entry.status().permissions();
        EXPECT_EQ(mode & (fs::perms::group_all | fs::perms::others_all), fs::perms::none)
            << entry.path();
        files += entry.is_regular_file();
    }
    // two transcripts, failed.tsv, .hark/lock, .hark/written, .hark/seconds
    EXPECT_EQ(files, 6);
}

TEST_F(BatchScript, WritesWhatIsMissingAndListsWhatFails) {
    folder_.copy("sea.wav", "in/sea.wav");
    folder_.copy("key.wav", "in/a folder/two 'quoted'.WAV");
    folder_.copy("road.wav", "in/a folder/sea.wav");
    write_text(folder_.path() / "in/bad.mp3", "this is no audio at all");
    const std::string arguments = "--output-dir out --format text,jsonl --shard 2 --price 2 in";
    ProcessResult result = batch(arguments + kDemoFlags);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    expect_contains(result.err, "3 transcribed, 0 already there, 1 failed, 0 left");
    // The error of a recording is said once.
    const size_t named = result.err.find("in/bad.mp3: ");
    ASSERT_NE(named, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("in/bad.mp3: ", named + 1), std::string::npos) << result.err;
    // sea, key and road are 2.89, 2.39 and 2.77 s long; three digits are printed.
    const size_t rate = result.err.find("8.1 s of audio in ");
    ASSERT_NE(rate, std::string::npos) << result.err;
    double wall = 0, speed = 0, per_dollar = 0;
    ASSERT_EQ(std::sscanf(result.err.c_str() + rate,
                          "8.1 s of audio in %lf s: %lf x real time, %lf h of audio per dollar",
                          &wall, &speed, &per_dollar),
              3)
        << result.err;
    EXPECT_NEAR(per_dollar, speed / 2, 0.01 * speed);
    EXPECT_NEAR(wall * speed, 8.05, 0.5);
    const std::set<std::string> all =
        with_lock({"sea.txt", "sea.jsonl", "a folder/sea.txt", "a folder/sea.jsonl",
                   "a folder/two 'quoted'.txt", "a folder/two 'quoted'.jsonl"});
    EXPECT_EQ(written(), all);
    EXPECT_EQ(folder_.text("out/sea.txt"), std::string(kSea) + "\n");
    expect_contains(folder_.text("out/a folder/two 'quoted'.txt"), kKey);
    expect_contains(folder_.text("out/a folder/sea.jsonl"), "\"source\":\"in/a folder/sea.wav\"");
    const std::string failed = folder_.text("out/failed.tsv");
    EXPECT_EQ(failed.rfind("in/bad.mp3\tthis is no audio ", 0), 0u) << failed;
    EXPECT_EQ(std::count(failed.begin(), failed.end(), '\n'), 1) << failed;

    // Nothing to do: no tool runs, and the failure is told of again.
    tool("audio-decode", "echo audio-decode ran >&2; exec audio-decode \"$@\"");
    tool("mel", "echo mel ran >&2; exec mel \"$@\"");
    result = batch(arguments + " --language Klingon");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "0 transcribed, 3 already there, 1 failed, 0 left");
    EXPECT_EQ(result.err.find(" ran"), std::string::npos) << result.err;
    EXPECT_EQ(folder_.text("out/failed.tsv"), failed);

    // --retry, a failed recording that was mended, one that is newer than its transcripts.
    expect_contains(batch(arguments + " --retry" + kDemoFlags).err,
                    "0 transcribed, 3 already there, 1 ");
    shell("cp in/sea.wav in/bad.mp3; touch -d '1 hour' in/bad.mp3 'in/a folder/sea.wav'");
    result = batch(arguments + kDemoFlags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "2 transcribed, 2 already there, 0 failed, 0 left");
    EXPECT_EQ(folder_.text("out/failed.tsv"), "");
    EXPECT_EQ(folder_.text("out/bad.txt"), std::string(kSea) + "\n");
}

TEST_F(BatchScript, TakesAListAndGoesOnWhenAToolIsKilled) {
    for (const char* name : {"sea.wav", "key.wav", "road.wav"}) folder_.copy(name, name);
    folder_.copy("room.m4a", "in/-key.m4a");
    hanging_audio_decode();
    const ProcessResult result = shell(
        "printf 'sea.wav\\nkey.wav\\n\\nin' | \"$batch\" --output-dir out --files-from - road.wav" +
        kDemoFlags +
        " & until { [ -e out/road.txt ] && [ -e hangs ]; } || [ $SECONDS -gt 200 ]; do sleep 0.05; "
        "done\n"
        "touch go; kill -9 $(cat hangs); wait $!");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "the pipe broke");
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
    const std::string run = "\"$batch\" --output-dir out in" + kDemoFlags;
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
    expect_contains(result.err, "another hark batch");
}

TEST_F(BatchScript, ARecordingThatBreaksThePipelineFailsButNotAllDoWhenTheToolsBreak) {
    folder_.copy("key.wav", "in/key.wav");
    // A model of 128 mels, which takes silence only.
    tool("mel", "cat > /dev/null; [[ \"$*\" != *raw* ]] || echo silence; echo \"${@: -2}\"");
    const std::string check =
        "[[ \"$*\" != *--check* ]] || { printf 'mels\\t128\\ntask\\ttranscribe\\n'; exit; }\n";
    tool("whisper-transcribe", check +
                                   "said=\"$(cat)\"\n[[ \"$said\" = *'--mels 128' ]] || exit 1\n"
                                   "[[ \"$said\" = silence* ]] || kill -9 $$\n");
    ProcessResult result = batch("--output-dir out in");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "0 transcribed, 0 already there, 1 failed, 0 left");
    EXPECT_EQ(folder_.text("out/failed.tsv"),
              "in/key.wav\tbroke the pipe (exit statuses of audio-decode, mel, "
              "whisper-transcribe: 0 0 137)\n");

    tool("whisper-transcribe", check + "cat > /dev/null; echo no GPU >&2; exit 1\n");
    result = batch("--output-dir out --retry in");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "no GPU");
    expect_contains(result.err, "0 transcribed, 0 already there, 0 failed, 1 left");
    EXPECT_EQ(folder_.text("out/failed.tsv"), "");
}

TEST_F(BatchScript, ReplacesOnlyWhatItHasWrittenUnlessTold) {
    folder_.copy("key.wav", "in/a.wav");
    folder_.copy("sea.wav", "in/b.wav");
    fs::create_directories(folder_.path() / "out");
    write_text(folder_.path() / "out/a.txt", "notes");
    const std::string run = "--output-dir out in" + kDemoFlags;
    ProcessResult result = batch(run);
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "failed: in/a.wav: out/a.txt exists; use --overwrite");
    expect_contains(result.err, "1 transcribed, 0 already there, 1 failed, 0 left");
    EXPECT_EQ(folder_.text("out/a.txt"), "notes");
    EXPECT_EQ(written(), with_lock({"a.txt", "b.srt", "b.txt"}));

    // One that comes during the run. Without the other file a.wav is transcribed.
    fs::remove(folder_.path() / "out/a.txt");
    tool("mel", "[[ \"$*\" = *raw* ]] || echo notes > out/a.srt\nexec mel \"$@\"\n");
    result = batch(run);
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "failed: in/a.wav: out/a.srt exists; use --overwrite");
    EXPECT_EQ(folder_.text("out/a.srt"), "notes\n");
    EXPECT_EQ(written(), with_lock({"a.srt", "b.srt", "b.txt"}));

    // All again, and then as after any run.
    fs::remove(folder_.path() / "tools/mel");
    write_text(folder_.path() / "out/b.txt", "an old one");
    result = batch(run + " --overwrite");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "2 transcribed, 0 already there, 0 failed, 0 left");
    expect_contains(folder_.text("out/a.txt"), kKey);
    EXPECT_EQ(folder_.text("out/b.txt"), std::string(kSea) + "\n");
    expect_contains(batch(run).err, "0 transcribed, 2 already there, 0 failed, 0 left");
    expect_contains(batch(run + " --overwrite --show-pipe").out, " --overwrite");
}

TEST_F(BatchScript, MixesChannelsWhateverTheEnvironmentSays) {
    folder_.copy("two_speakers.flac", "in/two.flac");
    const ProcessResult result =
        shell("HARK_SPLIT_CHANNELS=1 \"$batch\" -o out --format text in" + kDemoFlags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "1 transcribed, 0 already there, 0 failed, 0 left");
    expect_contains(batch("-o mixed --format text in" + kDemoFlags).err, "1 transcribed");
    EXPECT_EQ(folder_.text("out/two.txt"), folder_.text("mixed/two.txt"));
}

TEST_F(BatchScript, TakesValuesWithEqualsSignsAListFromWindowsAndAnyFolderName) {
    folder_.copy("sea.wav", "sea.wav");
    tool("mel", "[[ \"$*\" = *raw* ]] || echo mel: a word >&2\nexec mel \"$@\"\n");
    const ProcessResult result = shell(
        "printf 'sea.wav\\r\\n\\r\\n' | \"$batch\" --shard=1 --price=2 --files-from=- -o a=b" +
        kDemoFlags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "1 transcribed, 0 already there, 0 failed, 0 left");
    expect_contains(result.err, "per dollar");
    expect_contains(result.err, "mel: a word");
    EXPECT_EQ(folder_.text("a=b/sea.txt"), std::string(kSea) + "\n");
}

TEST_F(BatchScript, RefusesWhatIsWrongBeforeAnythingRuns) {
    folder_.copy("key.wav", "in/key.wav");
    folder_.copy("key.wav", "more/key.wav");
    folder_.copy("key.wav", "other/key.mp3");
    folder_.copy("key.wav", "lines/a\nb.wav");
    folder_.copy("key.wav", "returns/a\r.wav");
    folder_.copy("key.wav", "failed/failed.wav");
    const struct {
        const char* arguments;
        int exit_code;
        const char* message;
    } kWrong[] = {
        {"", 2, "--output-dir"},
        {"--output-dir out", 2, "--files-from FILE"},
        {"--output-dir out in --modle demo", 2, "--modle"},
        {"--output-dir out --price free in", 2, "'free'"},
        {"--output-dir out --price 0 in", 2, "--price"},
        {"--output-dir out --shard 0 in", 2, "--shard"},
        {"--output-dir out --format doc in", 2, "'doc'"},
        {"in --output-dir", 2, "--output-dir"},
        {"--output-dir out --shard=0 in", 2, "--shard: expected 1 or more, got '0'"},
        {"--output-dir out --files-from=", 2, "--files-from: expected a value"},
        {"--output-dir out --retry=yes in", 2, "--retry: expected no value"},
        {"--output-dir out --split-channels in", 2, "use hark transcribe --split-channels"},
        {"--output-dir out --files-from none", 1, "none"},
        {"--output-dir out lines", 1, "newline"},
        {"--output-dir out returns", 1, "carriage return"},
        {"--output-dir out in/$'\\xff'.wav", 1, "UTF-8"},
        {"--output-dir out in more", 1, "would write out/key.wav.srt, as would in/key.wav"},
        {"--output-dir out --format tsv failed", 1, "failed.tsv"}};
    for (const auto& wrong : kWrong) {
        const ProcessResult result = batch(wrong.arguments);
        EXPECT_EQ(result.exit_code, wrong.exit_code) << wrong.arguments << result.err;
        expect_contains(result.err, wrong.message);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
    EXPECT_EQ(written(), (std::set<std::string>{}));
    // The transcriber's own.
    EXPECT_EQ(batch("--output-dir out in --model demo --language Klingon").exit_code, 1);
    EXPECT_EQ(batch("--output-dir out in --model none").exit_code, 1);
    EXPECT_EQ(written(), (std::set<std::string>{}));
    // What differs in its ending keeps it.
    EXPECT_EQ(batch("--output-dir out --format srt in other" + kDemoFlags).exit_code, 0);
    EXPECT_EQ(written(), with_lock({"key.wav.srt", "key.mp3.srt"}));
    expect_contains(batch("--help").out, "--retry");
}

}  // namespace
}  // namespace hark::test
