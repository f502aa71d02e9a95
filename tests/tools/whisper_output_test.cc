// The files that whisper-transcribe_with writes: their names, and what becomes of a run if one of
// them cannot be written.
#include <gtest/gtest.h>

#include <set>

#include "support/process.h"
#include "tools/transcribe.h"

namespace hark::test {
namespace {

namespace fs = std::filesystem;

const std::string kSea = "He lived with his mother in a small house by the sea.\n";

// The mel stream of sea.wav, with another source of the same number of bytes in the JSON header.
std::string sea(const std::string& source = "sea.wav") {
    static const std::string kMel =
        run_shell("cd '" + samples_dir().string() + "' && audio-decode sea.wav | mel").out;
    std::string mel = kMel;
    return mel.replace(mel.find("sea.wav"), 7, source);
}

std::set<std::string> names_in(const fs::path& directory) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory))
        names.insert(entry.path().filename().string());
    return names;
}

TEST(WhisperOutput, LongNamesAndNamesWithNulAreWritten) {
    const TemporaryDirectory directory;
    const fs::path in = directory.path() / "in", out = directory.path() / "out";
    fs::create_directory(in);
    for (const size_t bytes : {248, 251, 255})
        fs::copy(samples_dir() / "sea.wav", in / (std::string(bytes - 4, 'x') + ".wav"));
    const std::string mel = run_shell("audio-decode '" + in.string() + "'/*.wav | mel").out;
    const ProcessResult result =
        transcribe_mel({"--output-dir", out.string(), "--format", "text,audacity"},
                       mel + sea("\\u0000a") + sea("\\u0000/") + sea());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::set<std::string> names = names_in(out);
    EXPECT_EQ(names.size(), 12u);
    for (const std::string& name : names) {
        if (name.ends_with(".audacity.txt")) continue;
        EXPECT_EQ(read_text(out / name), kSea) << name;
    }
    EXPECT_TRUE(names.contains("_a.txt"));
}

TEST(WhisperOutput, AFileThatCannotBeWrittenFailsItsRecordingAlone) {
    const TemporaryDirectory directory;
    fs::create_directory(directory.path() / "lea.txt");
    const ProcessResult result = transcribe_mel({"--output-dir", directory.path().string()},
                                                sea() + sea("lea.wav") + sea("tea.wav"));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_TRUE(result.err.starts_with(
        "whisper-transcribe: lea.wav: " + (directory.path() / "lea.txt").string() + ": cannot "))
        << result.err;
    EXPECT_EQ(read_text(directory.path() / "sea.txt"), kSea);
    EXPECT_EQ(read_text(directory.path() / "tea.txt"), kSea);
}

TEST(WhisperOutput, FoldersHaveThePermissionsThatTheUserWants) {
    const TemporaryDirectory directory;
    const fs::path out = directory.path() / "a/b";
    const ProcessResult result = run_shell(
        "umask 077; whisper-transcribe --model demo --output-dir '" + out.string() + "'", sea());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const fs::path& made : {out.parent_path(), out})
        EXPECT_EQ(fs::status(made).permissions(), fs::perms::owner_all) << made;
    EXPECT_EQ(fs::status(out / "sea.txt").permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
}

TEST(WhisperOutput, PrivateFilesAreTheUsersAlone) {
    const TemporaryDirectory directory;
    const fs::path out = directory.path() / "a";
    const std::string command = "umask 022; whisper-transcribe --model demo --output-dir '" +
                                out.string() + "' --summary '" + directory.path().string() +
                                "/summary' ";
    const ProcessResult result = run_shell(command + "--private", sea());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(fs::status(out).permissions(), fs::perms::owner_all);
    for (const fs::path& file : {out / "sea.txt", directory.path() / "summary"})
        EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write)
            << file;
    // A file that others could read is replaced by one that they cannot.
    fs::permissions(out / "sea.txt", fs::perms(0644));
    EXPECT_EQ(run_shell("HARK_PRIVATE=1; export HARK_PRIVATE; " + command + "--overwrite", sea())
                  .exit_code,
              0);
    EXPECT_EQ(fs::status(out / "sea.txt").permissions(),
              fs::perms::owner_read | fs::perms::owner_write);
}

TEST(WhisperOutput, ARecordingWithoutTextLeavesNoLine) {
    const std::string broken =
        run_shell("cd '" + samples_dir().string() +
                  "' && audio-decode README.md 2> /dev/null | mel 2> /dev/null")
            .out;
    const std::string silent =
        run_shell("cd '" + samples_dir().string() + "' && audio-decode silence.wav | mel").out;
    ProcessResult result = transcribe_mel({}, broken + sea() + broken + sea());
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, kSea + "\n" + kSea);
    const std::vector<std::string> options = {"--no-timestamps", "--word-timestamps"};
    const std::string text = transcribe_mel(options, sea()).out;
    result = transcribe_mel(options, silent + sea() + silent + sea() + silent);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, text + "\n" + text);
}

TEST(WhisperOutput, NothingIsOverwrittenUnlessAskedFor) {
    const TemporaryDirectory directory;
    const std::vector<std::string> arguments = {"-o", directory.path().string(), "-f", "text,json"};
    write_text(directory.path() / "sea.json", "mine");
    ProcessResult result = transcribe_mel(arguments, sea() + sea("lea.wav"));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err,
              "whisper-transcribe: sea.wav: " + (directory.path() / "sea.json").string() +
                  " exists; use --overwrite or another --output-dir\n");
    EXPECT_EQ(read_text(directory.path() / "sea.json"), "mine");
    EXPECT_EQ(names_in(directory.path()),
              (std::set<std::string>{"sea.json", "lea.json", "lea.txt"}));
    result = transcribe_mel({"-o", directory.path().string(), "-f", "text,json", "--overwrite"},
                            sea() + sea("lea.wav"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(read_text(directory.path() / "sea.json"), "mine");
}

// Whatever way a recording would be cut into windows, it is not if its files exist.
TEST(WhisperOutput, ARecordingWhoseFilesExistIsNotTranscribed) {
    const TemporaryDirectory directory;
    write_text(directory.path() / "sea.txt", "mine");
    const std::string summary = (directory.path() / "summary").string();
    for (const char* option : {"--vad", "--word-timestamps", "--windows=independent"}) {
        const ProcessResult result = transcribe_mel(
            {"-o", directory.path().string(), option, "--verbose", "--summary", summary}, sea());
        EXPECT_EQ(result.exit_code, 1);
        EXPECT_EQ(result.err.find("encoder"), std::string::npos) << option << result.err;
        EXPECT_NE(read_text(summary).find("\nsea.wav\t0\tsea\t2.89\t" + directory.path().string()),
                  std::string::npos)
            << read_text(summary);
    }
}

TEST(WhisperOutput, NamesFollowTheTemplate) {
    const TemporaryDirectory directory;
    const fs::path in = directory.path() / "in", out = directory.path() / "out";
    fs::create_directories(in / "a");
    fs::create_directories(in / "b");
    for (const char* name : {"a/talk.wav", "b/talk.wav"})
        fs::copy(samples_dir() / "sea.wav", in / name);
    const std::string mel =
        run_shell("cd '" + in.string() +
                  "' && audio-decode a/talk.wav b/talk.wav ../in/a/talk.wav | mel")
            .out;
    ProcessResult result =
        transcribe_mel({"-o", out.string(), "--output-name", "{folder}/{stem}"}, mel);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err,
              "whisper-transcribe: ../in/a/talk.wav: --output-name makes '../in/a/talk', which "
              "leaves the folder of --output-dir; use another template\n");
    EXPECT_EQ(read_text(out / "a/talk.txt"), kSea);
    EXPECT_EQ(read_text(out / "b/talk.txt"), kSea);
    EXPECT_EQ(names_in(out), (std::set<std::string>{"a", "b"}));
    // One folder for all: who has which name is said.
    result = transcribe_mel({"-o", (out / "flat").string()}, mel);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err,
              "whisper-transcribe: b/talk.wav: written to talk-2, because a/talk.wav has the same "
              "name\n"
              "whisper-transcribe: ../in/a/talk.wav: written to talk-3, because a/talk.wav has the "
              "same name\n");
    result = transcribe_mel({"-o", out.string(), "--output-name", "{title}"}, mel);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("unknown field {title}"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace hark::test
