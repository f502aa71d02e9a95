// What a person sees of whisper-transcribe on a terminal.
#include <gtest/gtest.h>

#include <sstream>

#include "support/process.h"
#include "support/terminal.h"

namespace hark::test {
namespace {

using Lines = std::vector<std::string>;

// A shell command that transcribes the mel stream of samples.
std::string on_mel(const TemporaryDirectory& directory, const std::string& samples,
                   const std::string& arguments) {
    const std::string mel = (directory.path() / "mel").string();
    const ProcessResult made = run_shell("cd '" + samples_dir().string() + "' && audio-decode " +
                                         samples + " | mel > '" + mel + "'");
    EXPECT_EQ(made.err, "");
    return "whisper-transcribe --model demo --threads 1 " + arguments + " < '" + mel + "'";
}

TEST(WhisperTerminal, ProgressIsGoneBeforeTextIsWritten) {
    const TemporaryDirectory directory;
    const std::string command = on_mel(directory, "story.mp3 sea.wav", "");
    Lines expected;
    std::istringstream text(run_shell(command).out);
    for (std::string line; std::getline(text, line);) expected.push_back(line);
    ASSERT_GE(expected.size(), 8u);
    Terminal terminal(command);
    EXPECT_EQ(terminal.finish(), 0);
    EXPECT_NE(terminal.bytes().find("story.mp3"), std::string::npos) << "no progress was shown";
    EXPECT_EQ(terminal.screen(), expected) << terminal.bytes();
}

TEST(WhisperTerminal, ProgressIsGoneBeforeAnErrorIsWritten) {
    const TemporaryDirectory directory;
    const std::string command = on_mel(directory, "story.mp3 sea.wav story.mp3",
                                       "--output-dir '" + directory.path().string() + "'");
    std::filesystem::create_directory(directory.path() / "sea.txt");
    Terminal terminal(command, 300);
    EXPECT_EQ(terminal.finish(), 1);
    const Lines screen = terminal.screen();
    ASSERT_EQ(screen.size(), 1u) << terminal.bytes();
    EXPECT_TRUE(screen[0].starts_with("whisper-transcribe: sea.wav: ")) << screen[0];
}

}  // namespace
}  // namespace hark::test
