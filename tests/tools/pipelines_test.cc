// pipelines/transcribe.sh and ask.sh, with the real tools first on the PATH.
#include <gtest/gtest.h>

#include <algorithm>
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
         std::vector<std::string>{"", "--help", sea + " {} --model", sea + " {} demo demo more",
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
