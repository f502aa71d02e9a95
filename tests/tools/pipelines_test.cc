// hark transcribe of folders, and what all scripts of pipelines/ have in common, with the real
// tools first on the PATH.
#include <algorithm>
#include <array>
#include <chrono>

#include "tools/pipelines.h"

namespace hark::test {
namespace {

ProcessResult transcribe(const fs::path& folder, const std::string& options = "--model demo") {
    return script("transcribe.sh", "'" + folder.string() + "' " + options + " --threads 1");
}

TEST(TranscribeScript, WritesNextToEachRecordingAndSkipsWhatIsThere) {
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
}

TEST(TranscribeScript, ReplacesFilesOnlyIfAsked) {
    Folder folder;
    folder.copy("sea.wav", "sea.wav");
    folder.copy("key.wav", "key.wav");
    write_text(folder.path() / "sea.txt", "notes");  // and no sea.srt
    ProcessResult result = transcribe(folder.path());
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "sea.txt: exists, ");
    expect_contains(result.err, "1 transcribed, 0 already there, 1 failed");
    expect_contains(result.err, "failed: " + (folder.path() / "sea.wav").string() + "\n");
    EXPECT_EQ(folder.text("sea.txt"), "notes");
    EXPECT_FALSE(folder.names().contains("sea.srt"));
    result = transcribe(folder.path(), "--model demo --show-pipe");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    result = transcribe(folder.path(), "--model demo --overwrite");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(folder.text("sea.txt"), std::string(kSea) + "\n");
    // Corrected by hand, and older than its recording.
    write_text(folder.path() / "sea.srt", "corrected");
    fs::last_write_time(folder.path() / "sea.wav",
                        fs::file_time_type::clock::now() + std::chrono::hours(1));
    result = transcribe(folder.path());
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "0 transcribed, 1 already there, 1 failed");
    EXPECT_EQ(folder.text("sea.srt"), "corrected");
}

// The second channel has files of its own.
TEST(TranscribeScript, ReplacesFilesOfChannelsOnlyIfAsked) {
    Folder folder;
    folder.copy("two_speakers.flac", "two.flac");
    write_text(folder.path() / "two.1.txt", "notes");
    const ProcessResult result =
        transcribe(folder.path(), "--model demo --split-channels --format text");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "two.1.txt: exists; use --overwrite");
    EXPECT_EQ(folder.names(), (std::set<std::string>{"two.1.txt", "two.flac"}));
    EXPECT_EQ(folder.text("two.1.txt"), "notes");
}

TEST(TranscribeScript, TakesAFolderWhoseNameIsAnAssignment) {
    Folder folder;
    folder.copy("sea.wav", "year=2024/sea.wav");
    const ProcessResult result =
        run_shell("cd '" + folder.path().string() + "'; timeout 60 '" +
                  (source_dir() / "pipelines/transcribe.sh").string() + "' year=2024 --model demo");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "1 of 1: year=2024/sea.wav -> sea.srt,txt (2.9 s of audio in ");
    EXPECT_EQ(folder.text("year=2024/sea.txt"), std::string(kSea) + "\n");
}

TEST(TranscribeScript, DetectsLanguages) {
    const DetectedLanguages by_themselves;
    Folder folder;
    folder.copy("sea.wav", "sea.wav");
    write_text(folder.path() / "bad.mp3", "this is no audio at all");
    const std::string sea = "'" + (folder.path() / "sea.wav").string() + "' ";
    const std::string bad = (folder.path() / "bad.mp3").string();
    ProcessResult result =
        script("transcribe.sh", "--model demo --task detect " + sea + "'" + bad + "'");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(result.out.starts_with("en\t0.")) << result.out;
    expect_contains(result.err, bad + ": ");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    const ProcessResult pipe =
        script("transcribe.sh", "--model demo --task=detect --show-pipe " + sea);
    EXPECT_EQ(pipe.exit_code, 0) << pipe.err;
    expect_contains(pipe.out, "--task detect\n");
    result = transcribe(folder.path(), "--model demo --task detect");
    EXPECT_EQ(result.exit_code, 2);
    expect_contains(result.err, "--task detect: writes to standard output");
}

TEST(TranscribeScript, KeepsWhatThereIsOfACutRecording) {
    Folder folder;
    write_text(folder.path() / "cut.mp3", read_text(samples_dir() / "story.mp3").substr(0, 80270));
    const ProcessResult result = transcribe(folder.path(), "--model demo --format json,text");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "0 transcribed, 0 already there, 1 failed");
    EXPECT_TRUE(result.err.ends_with("failed: " + (folder.path() / "cut.mp3").string() + "\n"));
    EXPECT_EQ(folder.names(), (std::set<std::string>{"cut.json", "cut.mp3"}));
    expect_contains(folder.text("cut.json"), "\"text\": ");
}

TEST(TranscribeScript, WritesToStandardOutputWhateverTheEnvironment) {
    Folder folder;
    const std::string in = "'" + folder.path().string() + "/";
    const ProcessResult result = run_shell(
        "HARK_OUTPUT_DIR=" + in + "out' HARK_OUTPUT_NAME=name HARK_OVERWRITE=true " +
        "HARK_SUMMARY=" + in + "summary' '" + (source_dir() / "pipelines/transcribe.sh").string() +
        "' --model demo '" + (samples_dir() / "sea.wav").string() + "'");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, std::string(kSea) + "\n");
    EXPECT_EQ(folder.names(), std::set<std::string>{});
}

TEST(TranscribeScript, EndsItsPipeIfASignalEndsIt) {
    Folder folder;
    folder.copy("sea.wav", "in/sea.wav");
    // Ends by itself in the end, or if it is told to.
    write_text(folder.path() / "audio-decode",
               "#!/bin/bash\n[[ \"$*\" != */dev/null ]] || exit 0\n"
               "case \"$1\" in --help-as) exit ;; esac\n"
               "trap 'touch ended; exit' TERM\ntouch begun\n"
               "for i in {1..100}; do sleep 0.1; done\n");
    fs::permissions(folder.path() / "audio-decode", fs::perms::owner_all);
    const std::string enter = "cd '" + folder.path().string() + "'; PATH=\"$PWD:$PATH\" ";
    const struct {
        const char* command;
        const char* signal;
        const char* status;
    } kRuns[] = {{"transcribe.sh' in --model demo", "TERM", "143\n"},
                 {"transcribe.sh' in/sea.wav --model demo", "HUP", "129\n"},
                 {"ask.sh' in/sea.wav Where? -m demo --whisper-model demo", "TERM", "143\n"}};
    for (const auto& run : kRuns) {
        const ProcessResult result =
            run_shell(enter + "'" + (source_dir() / "pipelines").string() + "/" + run.command +
                      " & until [ -e begun ]; do sleep 0.05; done; kill -" + run.signal +
                      " $!; wait $!; echo $?\n"
                      "for i in 1 2 3 4 5 6 7 8 9; do [ -e ended ] || sleep 0.2; done\n"
                      "rm begun ended");
        EXPECT_EQ(result.exit_code, 0) << run.command << result.err;
        EXPECT_EQ(result.out, run.status) << run.command;
        EXPECT_EQ(folder.names(), (std::set<std::string>{"audio-decode", "in/sea.wav"}));
    }
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
        const std::string bad = (folder.path() / "bad.mp3").string();
        EXPECT_TRUE(result.err.ends_with("failed: " + bad + "\n")) << result.err;
        // What is wrong with it is said by one tool.
        EXPECT_EQ(result.err.find(bad + ": "), result.err.rfind(bad + ": ")) << result.err;
        EXPECT_EQ(folder.names(),
                  (std::set<std::string>{"bad.mp3", "good.srt", "good.txt", "good.wav"}));
    }
}

TEST(TranscribeScript, AFolderHasLinksAndNamesOfAnyBytes) {
    Folder folder;
    folder.copy("sea.wav", "in/caf\xe9.wav");
    folder.copy("key.wav", "key");
    fs::create_symlink("../key", folder.path() / "in/link.WAV");
    folder.copy("key.wav", "in/.hark.other/key.wav");
    ProcessResult result = transcribe(folder.path() / "in");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(folder.text("in/caf\xe9.txt"), std::string(kSea) + "\n");
    expect_contains(folder.text("in/link.txt"), kKey);
    expect_contains(result.err, "2 transcribed, 0 already there, 0 failed");
    fs::create_symlink("gone", folder.path() / "in/lost.wav");
    result = transcribe(folder.path() / "in");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "in/lost.wav: ");
    expect_contains(result.err, "0 transcribed, 2 already there, 1 failed");
}

TEST(TranscribeScript, AFolderThatCannotBeReadFailsAndTheOthersAreDone) {
    Folder folder;
    folder.copy("key.wav", "in/key.wav");
    folder.copy("sea.wav", "in/closed/sea.wav");
    fs::permissions(folder.path() / "in/closed", fs::perms::none);
    const auto hark = [&](const std::string& command) {
        return run_shell("cd '" + folder.path().string() + "' && " + kWithoutRights + "hark " +
                         command);
    };
    ProcessResult result = hark("transcribe in" + kDemoFlags);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(result.err.starts_with("hark transcribe: in/closed/: this folder cannot be read\n"))
        << result.err;
    EXPECT_TRUE(
        result.err.ends_with("1 transcribed, 0 already there, 1 failed\n"
                             "hark transcribe: failed: in/closed/\n"))
        << result.err;
    result = hark("batch in -o out" + kDemoFlags);
    expect_fails(result, 1, "hark batch: in/closed/: this folder cannot be read\n");
    expect_contains(result.err, "1 transcribed, 0 already there, 0 failed, 0 left");
    expect_fails(hark("search in door"), 1, "hark search: in/closed: this folder cannot be read\n");
    expect_contains(hark("search in door").out, kKey);
    expect_fails_without_output(hark("search in/closed door"), 1,
                                "hark search: in/closed: this folder cannot be read\n");
    expect_fails_without_output(
        hark("shard plan in -o shards"), 1,
        "hark-shard plan: in/closed: cannot read this folder: Permission denied\n");
    fs::permissions(folder.path() / "in/closed", fs::perms::owner_all);
}

TEST(TranscribeScript, AFolderThatCannotBeWrittenIsNamed) {
    Folder folder;
    folder.copy("key.wav", "in/key.wav");
    fs::permissions(folder.path() / "in", fs::perms::owner_read | fs::perms::owner_exec);
    const ProcessResult result = run_shell("cd '" + folder.path().string() + "' && " +
                                           kWithoutRights + "hark transcribe in" + kDemoFlags);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(result.err.starts_with(
        "hark transcribe: in: cannot write into this folder; give --output-dir DIR\n"
        "hark transcribe: 0 transcribed, 0 already there, 1 failed\n"))
        << result.err;
    fs::permissions(folder.path() / "in", fs::perms::owner_all);
}

TEST(TranscribeScript, WhatIsWrongForAllEndsItAtOnce) {
    Folder folder;
    folder.copy("key.wav", "key.wav");
    folder.copy("sea.wav", "sea.wav");
    const struct {
        const char* options;
        int exit_code;
        const char* message;
        bool of_the_script;  // not of a tool that it starts
    } kWrong[] = {{"--model demo --langauge en", 2, "--langauge", true},
                  {"--model demo --best-of 0", 2, "--best-of", false},
                  {"--model demo --language Klingon", 1, "'Klingon'", false},
                  {"--model none", 1, "'none'", false},
                  {"--model demo --output-dir /proc/none", 1, "/proc/none", true},
                  {"", 1, "--model demo", false}};
    for (const auto& wrong : kWrong) {
        // A home without a model of the user's.
        const ProcessResult result =
            run_shell("HOME='" + folder.path().string() + "' '" +
                      (source_dir() / "pipelines/transcribe.sh").string() + "' '" +
                      folder.path().string() + "' " + wrong.options);
        EXPECT_EQ(result.exit_code, wrong.exit_code) << wrong.options << result.err;
        EXPECT_EQ(result.err.starts_with("hark transcribe: "), wrong.of_the_script) << result.err;
        expect_contains(result.err, wrong.message);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
    EXPECT_EQ(folder.names(), (std::set<std::string>{"key.wav", "sea.wav"}));
    EXPECT_EQ(script("transcribe.sh", "").exit_code, 2);
    EXPECT_EQ(script("transcribe.sh", "--model demo").exit_code, 2);
    EXPECT_EQ(transcribe(folder.path() / "none").exit_code, 1);
}

TEST(TranscribeScript, WritesEveryFormat) {
    Folder folder;
    folder.copy("sea.wav", "sea.wav");
    const ProcessResult result = transcribe(folder.path(), "--model demo --format all");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(folder.names(),
              (std::set<std::string>{"sea.wav", "sea.txt", "sea.srt", "sea.vtt", "sea.ass",
                                     "sea.lrc", "sea.tsv", "sea.csv", "sea.audacity.txt", "sea.md",
                                     "sea.json", "sea.jsonl"}));
    expect_contains(transcribe(folder.path(), "--model demo --format all").err, "1 already there");
    // A page is written if it is named.
    const ProcessResult page = transcribe(folder.path(), "--model demo --format html,html");
    EXPECT_EQ(page.exit_code, 0) << page.err;
    expect_contains(page.err, "-> sea.html (");
    expect_contains(folder.text("sea.html"), "id=\"transcript\"");
}

// A name of 255 bytes leaves no room for another ending.
TEST(TranscribeScript, NamesAreCutWhereTheyHaveNoRoomForTheEnding) {
    Folder folder;
    std::string name;
    while (name.size() + 2 <= 251) name += "\u00e9";
    folder.copy("sea.wav", "in/" + name + ".wav");
    const std::string in = "'" + (folder.path() / "in").string() + "'";
    ProcessResult result = transcribe(folder.path() / "in", "--model demo --format audacity,srt");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::set<std::string> names = folder.names();
    for (const std::string& one : names) EXPECT_LE(one.size(), 3u + 255u);
    EXPECT_EQ(names.size(), 3u);
    const std::string out = "'" + (folder.path() / "out").string() + "'";
    result = script("batch.sh", in + " --model demo --format audacity,srt --output-dir " + out);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.err, "1 transcribed, 0 already there, 0 failed");
}

TEST(TranscribeScript, ShownPipesGiveNamesThatCollideTheirEnding) {
    Folder folder;
    folder.copy("sea.wav", "a.wav");
    folder.copy("room.m4a", "a.m4a");
    const ProcessResult pipes = transcribe(folder.path(), "--model demo --show-pipe");
    EXPECT_EQ(run_shell(pipes.out).exit_code, 0) << pipes.out;
    EXPECT_EQ(folder.names(), (std::set<std::string>{"a.m4a", "a.m4a.srt", "a.m4a.txt", "a.wav",
                                                     "a.wav.srt", "a.wav.txt"}));
}

TEST(TranscribeScript, LongNamesThatAreEqualWhereTheyAreCutGetNumbers) {
    Folder folder;
    const std::string start(246, 'x');
    for (const char* end : {"aaaaa", "bbbbb"})
        folder.copy("sea.wav", "in/" + (start + end).substr(0, 251) + ".wav");
    const ProcessResult result =
        run_shell("cd '" + folder.path().string() +
                  "' && hark transcribe -m demo -t 1 in -o out -f audacity,srt");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    size_t transcripts = 0;
    for (const std::string& name : folder.names()) transcripts += name.rfind("out/", 0) == 0;
    EXPECT_EQ(transcripts, 4u);
}

TEST(TranscribeScript, AFolderMayLookLikeAnOption) {
    Folder folder;
    folder.copy("sea.wav", "sea.wav");
    const ProcessResult result = run_shell("cd '" + folder.path().string() +
                                           "' && hark transcribe -m demo -t 1 -o -dash sea.wav");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(folder.text("-dash/sea.txt"), std::string(kSea) + "\n");
}

}  // namespace
}  // namespace hark::test
