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
    const std::string command = on_mel(directory, "story.mp3 sea.wav key.wav",
                                       "--output-dir '" + directory.path().string() + "'");
    std::filesystem::create_directory(directory.path() / "sea.txt");
    Terminal terminal(command, 300);
    EXPECT_EQ(terminal.finish(), 1);
    const Lines screen = terminal.screen();
    ASSERT_EQ(screen.size(), 1u) << terminal.bytes();
    EXPECT_TRUE(screen[0].starts_with("whisper-transcribe: sea.wav: ")) << screen[0];
}

// Every progress line that was drawn.
Lines drawn(const std::string& bytes) {
    Lines lines;
    const std::string mark = "\r\033[K";
    for (size_t at = 0; (at = bytes.find(mark, at)) != bytes.npos;) {
        at += mark.size();
        const std::string line = bytes.substr(at, bytes.find_first_of("\r\n", at) - at);
        if (line.find('%') != line.npos) lines.push_back(line);
    }
    return lines;
}

TEST(WhisperTerminal, ProgressFitsTheTerminal) {
    const TemporaryDirectory directory;
    const std::string name = "an introduction to the history of the sea.wav";
    std::filesystem::copy(samples_dir() / "sea.wav", directory.path() / name);
    const std::string command =
        on_mel(directory, "sea.wav '" + (directory.path() / name).string() + "'", "");
    for (const size_t columns : {40, 200}) {
        Terminal terminal(command, static_cast<int>(columns));
        EXPECT_EQ(terminal.finish(), 0);
        const Lines lines = drawn(terminal.bytes());
        ASSERT_GE(lines.size(), 4u) << terminal.bytes();
        EXPECT_EQ(lines.front(), "sea.wav: 0%");
        for (const std::string& line : lines) EXPECT_LT(line.size(), columns) << line;
        const std::string& last = lines.back();
        EXPECT_NE(last.find(": 100%, 2 of 2, "), last.npos) << last;
        EXPECT_TRUE(last.ends_with(", 0:00 left")) << last;
        EXPECT_EQ(last.find("...") != last.npos, columns == 40) << last;
        EXPECT_EQ(last.find(name) != last.npos, columns == 200) << last;
    }
}

TEST(WhisperTerminal, ProgressIsShownAsItIsAskedFor) {
    const TemporaryDirectory directory;
    const std::string command = on_mel(directory, "sea.wav", "");
    // A terminal on stderr alone does: what is read comes from a file, and so goes the text.
    const std::string to_file = " > '" + (directory.path() / "text").string() + "'";
    for (const auto& [arguments, shown] : std::vector<std::pair<std::string, bool>>{
             {to_file, true},
             {" | cat", false},
             {" --quiet", false},
             {" --progress never", false},
             {" --progress always | cat", true},
             {" --progress always --quiet" + to_file, true}}) {
        Terminal terminal(command + arguments);
        EXPECT_EQ(terminal.finish(), 0);
        EXPECT_EQ(!drawn(terminal.bytes()).empty(), shown) << arguments << terminal.bytes();
    }
    Terminal dumb("TERM=dumb; " + command);
    EXPECT_EQ(dumb.finish(), 0);
    EXPECT_EQ(dumb.bytes(), "He lived with his mother in a small house by the sea.\r\n");
    // Without a terminal: lines of a log, or of JSON.
    EXPECT_EQ(run_shell(command).err, "");
    const std::string log = run_shell(command + " --progress always").err;
    EXPECT_TRUE(log.starts_with("sea.wav: 0%\n")) << log;
    EXPECT_EQ(log.find('\033'), log.npos) << log;
    const std::string objects = run_shell(command + " --progress json --quiet").err;
    std::istringstream lines(objects);
    std::string line, last;
    while (std::getline(lines, line)) last = line;
    EXPECT_TRUE(last.starts_with(R"({"name":"sea.wav","unit":"seconds","done":2.89,"total":2.89,)"
                                 R"("item":1,"items":1,"speed":)"))
        << objects;
}

// cat waits for a second document on the terminal, and the tool for cat, until Ctrl-C. One program
// only: bash would start a second one if the first ended just as the signal came.
TEST(WhisperTerminal, CtrlCLeavesACleanLine) {
    const TemporaryDirectory directory;
    const std::string command = on_mel(directory, "story.mp3", "");
    const std::string mel = (directory.path() / "mel").string();
    Terminal terminal("cat '" + mel +
                      "' - | exec whisper-transcribe --model demo --threads 1 --output-dir '" +
                      directory.path().string() + "/out'");
    ASSERT_TRUE(terminal.wait_for("story.mp3: 0%")) << terminal.bytes();
    terminal.type("\x03");
    EXPECT_EQ(terminal.finish(), -2);
    EXPECT_TRUE(terminal.bytes().ends_with("\r\033[K")) << terminal.bytes();
    for (const std::string& line : terminal.screen()) EXPECT_EQ(line, "");
    for (const auto& file : std::filesystem::directory_iterator(directory.path() / "out"))
        EXPECT_FALSE(file.path().filename().string().starts_with('.')) << file;
}

TEST(WhisperTerminal, ConfidenceMarksWordsOnATerminal) {
    const TemporaryDirectory directory;
    const std::string command =
        on_mel(directory, "roi.wav", "--confidence --progress never");
    const std::string plain = run_shell(command).out;
    EXPECT_EQ(plain.find('\033'), plain.npos) << plain;
    const std::string marked = run_shell(command + " --color always").out;
    EXPECT_NE(marked.find("\033[4;33m"), marked.npos) << marked;
    Terminal terminal(command, 300);
    EXPECT_EQ(terminal.finish(), 0);
    EXPECT_NE(terminal.bytes().find("\033[4;33m"), std::string::npos) << terminal.bytes();
    std::string text;
    for (const std::string& line : terminal.screen()) text += line + "\n";
    EXPECT_EQ(text, plain);
    for (const char* without : {" --color never", " --color auto"}) {
        Terminal colourless("export NO_COLOR=1; " + command + without);
        EXPECT_EQ(colourless.finish(), 0);
        EXPECT_EQ(colourless.bytes().find('\033'), std::string::npos) << without;
    }
}

}  // namespace
}  // namespace hark::test
