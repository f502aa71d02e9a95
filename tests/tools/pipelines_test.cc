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
                 {"ask.sh' in/sea.wav Where? --whisper-model demo", "TERM", "143\n"}};
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
        EXPECT_EQ(std::string(wrong.options).find("--langauge") != std::string::npos,
                  result.err.starts_with("hark transcribe: "))
            << result.err;
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

TEST(Scripts, ShowTheirHelp) {
    for (const std::string name : {"ask", "batch", "live", "plot", "plot-run", "plot-transcript",
                                   "train", "transcribe", "demo", "verify-official"}) {
        const ProcessResult shown = script(name + ".sh", "--help");
        EXPECT_EQ(shown.exit_code, 0) << name << shown.err;
        std::string command = "Usage: hark " + name;
        std::replace(command.begin(), command.end(), '-', ' ');
        EXPECT_TRUE(shown.out.starts_with(command) ||
                    shown.out.find("sage: pipelines/" + name) != std::string::npos)
            << shown.out;
        EXPECT_EQ(shown.err, "") << name;
    }
}

TEST(Scripts, AnswerTheFlagsThatAllToolsAnswer) {
    std::string version = run_tool("mel", {"--version"}).out;
    ASSERT_TRUE(version.starts_with("mel (hark) ")) << version;
    version.erase(0, 3);
    for (const std::string name :
         {"ask", "batch", "live", "plot", "plot-run", "plot-transcript", "train", "transcribe"}) {
        std::string command = "hark " + name;
        std::replace(command.begin(), command.end(), '-', ' ');
        EXPECT_EQ(script(name + ".sh", "--version").out, command + version);
        const ProcessResult all = script(name + ".sh", "--help-all");
        EXPECT_EQ(all.exit_code, 0) << name << all.err;
        EXPECT_EQ(all.out, script(name + ".sh", "--help").out);
    }
    EXPECT_EQ(script("transcribe.sh", "talk.wav --version").out, "hark transcribe" + version);
}

TEST(Scripts, TakeTheToolsOnThePathBeforeThoseOfTheBuild) {
    Folder folder;
    write_text(
        folder.path() / "gpt-generate",
        "#!/bin/sh\n[ \"$1\" != --help-as ] || printf 'model\\tm\\tMODEL\\t-\\tmodel\\t-\\t\\n'\n"
        "echo \"$@\"\n");
    fs::permissions(folder.path() / "gpt-generate", fs::perms::owner_all);
    const ProcessResult asked = run_shell("PATH='" + folder.path().string() + "':$PATH '" +
                                          (source_dir() / "pipelines/ask.sh").string() + "' '" +
                                          (samples_dir() / "sea.wav").string() +
                                          "' 'a {} b' --model mine --whisper-model demo");
    EXPECT_EQ(asked.out, "--model mine --prompt a {} b\n") << asked.err;
}

TEST(Scripts, AMistypedOptionGetsTheNearestOne) {
    for (const auto& [name, given, near] : std::vector<std::array<std::string, 3>>{
             {"transcribe", "--show-pip", "--show-pipe"},
             {"transcribe", "--split_chanels", "--split-channels"},
             {"transcribe", "--lang", "--language"},
             {"batch", "--pric", "--price"},
             {"batch", "--retri", "--retry"},
             {"live", "--microphon", "--microphone"},
             {"ask", "--whisper_model", "--whisper-model"},
             {"train", "--prove_resume", "--prove-resume"},
             {"plot-transcript", "--beem-size", "--beam-size"}}) {
        const ProcessResult result = script(name + ".sh", given);
        EXPECT_EQ(result.exit_code, 2) << name << given;
        expect_contains(result.err, "unknown option '" + given + "'; did you mean '" + near + "'?");
        EXPECT_EQ(result.err.rfind("hark ", 0), 0u) << result.err;
    }
    expect_contains(script("batch.sh", "--zzzzzz").err, "unknown option '--zzzzzz'; try");
}

TEST(Scripts, MessagesHaveNoControlBytes) {
    for (const char* command :
         {"hark $'tr\\e[31mx'", "hark plot $'\\e[31mx'",
          "hark transcribe -m demo $'a\\e[31m\\nb.wav'",
          "hark batch -m demo -o x --price $'\\e[31m' y.wav", "hark train --steps $'\\e[31m' x"}) {
        const ProcessResult result = run_shell(command);
        EXPECT_NE(result.exit_code, 0) << command;
        EXPECT_EQ(result.err.find('\033'), std::string::npos) << command;
        EXPECT_NE(result.err.find("\\x1b"), std::string::npos) << result.err;
    }
    const ProcessResult long_word = run_shell("hark plot $(head -c 100000 /dev/zero | tr '\\0' x)");
    EXPECT_LT(long_word.err.size(), 3000u);
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

TEST(Scripts, ChooseHowTheSoundGetsToTheTranscriber) {
    Folder folder;
    folder.copy("sea.wav", "sea.wav");
    const std::string enter = "cd '" + folder.path().string() + "'; export XDG_CONFIG_HOME=$PWD; ";
    for (const char* set : {"HARK_LIVE=true", "HARK_RAW=s16le", "HARK_MELS=128"})
        for (const char* command : {"transcribe", "live"}) {
            const ProcessResult result =
                run_shell(enter + set + " hark " + command + " -m demo -t 1 sea.wav");
            EXPECT_EQ(result.out, std::string(kSea) + "\n") << set << result.err;
        }
    EXPECT_EQ(run_shell(enter + "HARK_WORD_TIMESTAMPS=true hark live -m demo sea.wav").out,
              std::string(kSea) + "\n");
    fs::create_directories(folder.path() / "hark");
    write_text(folder.path() / "hark/config", "task = detect\n");
    const ProcessResult detected = run_shell(enter + "hark transcribe -m demo -t 1 sea.wav");
    EXPECT_EQ(detected.out.rfind("en\t", 0), 0u) << detected.out << detected.err;
}

TEST(AskScript, AsksAboutPlainTextWhateverTheDefaultsAre) {
    const std::string sea = "'" + (samples_dir() / "sea.wav").string() + "'";
    const std::string command =
        "hark ask " + sea + " 'Is it {}?' -m demo --whisper-model demo --max-tokens 1 --seed 1";
    const ProcessResult plain = run_shell(command + " --echo");
    ASSERT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_EQ(plain.out.rfind("Is it " + std::string(kSea), 0), 0u) << plain.out;
    for (const char* set :
         {"HARK_TIMES=true", "HARK_TASK=detect", "HARK_WHISPER_TRANSCRIBE_FORMAT=srt",
          "HARK_LIVE=true", "HARK_RAW=s16le", "HARK_GPT_GENERATE_INPUT_FORMAT=jsonl"})
        EXPECT_EQ(run_shell(std::string(set) + " " + command + " --echo").out, plain.out) << set;
    Folder home;
    fs::create_directories(home.path() / "hark");
    for (const char* line :
         {"[whisper-transcribe]\nformat = srt", "[whisper-transcribe]\noutput-dir = out",
          "task = detect", "live = true", "max-words-per-line = 2"}) {
        write_text(home.path() / "hark/config", line + std::string("\n"));
        const ProcessResult asked = run_shell("export XDG_CONFIG_HOME='" + home.path().string() +
                                              "'; cd \"$XDG_CONFIG_HOME\"; " + command + " --echo");
        EXPECT_EQ(asked.out, plain.out) << line << asked.err;
    }
    EXPECT_EQ(home.names(), (std::set<std::string>{"hark/config"}));
    const std::string half = "head -c 80270 '" + (samples_dir() / "story.mp3").string() + "'";
    const std::string of_half =
        half + " | hark ask - 'Who? {}' -m demo --whisper-model demo --max-tokens 1";
    EXPECT_EQ(run_shell(of_half).exit_code, 1);
    EXPECT_EQ(run_shell(of_half + " --allow-truncated").exit_code, 0);
}

}  // namespace
}  // namespace hark::test
