// Completions of an installation in real shells: a Tab is typed in bash and zsh, fish is asked.
#include "tools/pipelines.h"

namespace hark::test {
namespace {

// The folder of a test, with models of the user's: two names.
class Completion : public testing::Test {
  protected:
    void SetUp() override {
        for (const char* name : {"whisper-mine", "gpt-mine"})
            fs::create_directory_symlink(source_dir() / "models/whisper-demo", models() / name);
        fs::create_directories(folder_.path() / "a folder");
        write_text(folder_.path() / "talk.mp3", "");
    }
    fs::path models() const {
        const fs::path path = folder_.path() / "data/hark/models";
        fs::create_directories(path);
        return path;
    }
    // Runs a command in the folder, with the completions of the source tree.
    ProcessResult shell(const std::string& command, const std::string& input = "") {
        return run_shell("cd '" + folder_.path().string() +
                             "'; export HOME=\"$PWD\" XDG_DATA_HOME=\"$PWD/data\" TERM=dumb; "
                             "export COMPLETIONS='" +
                             (source_dir() / "completions").string() + "'; " + command,
                         input);
    }
    // What is on the terminal after `typed` (\t is Tab) in an interactive shell.
    std::string typed(const std::string& start, const std::string& typed) {
        return shell("script -qec \"" + start + "\" /dev/null", typed).out;
    }
    Folder folder_;
};

TEST_F(Completion, Bash) {
    const auto complete = [&](const std::string& line) {
        // The words of the line, as bash splits them; Tab is pressed at its end.
        const ProcessResult result = shell(
            "bash --norc -c '. \"$COMPLETIONS/hark.bash\"; compopt() { echo \"compopt $*\"; }; "
            "COMP_WORDS=(" +
            line +
            "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hark; "
            "printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_EQ(result.err, "");
        return result.out;
    };
    expect_contains(complete("hark \"\""), "transcribe\nlive\nask\n");
    EXPECT_EQ(complete("hark transc"), "transcribe\n");
    EXPECT_EQ(complete("hark transcribe --show"), "--show-pipe\n");
    EXPECT_EQ(complete("hark transcribe --serv"), "--server\n");
    EXPECT_EQ(complete("hark ask --api-key-file ta"), "compopt -o filenames\ntalk.mp3\n");
    EXPECT_EQ(complete("hark transcribe --task \"\""), "transcribe\ntranslate\ndetect\n");
    EXPECT_EQ(complete("whisper-transcribe --task = trans"), "transcribe\ntranslate\n");
    EXPECT_EQ(complete("whisper-transcribe --task ="), "transcribe\ntranslate\ndetect\n");
    expect_contains(complete("whisper-transcribe --model whisper-m"), "whisper-mine\n");
    EXPECT_EQ(complete("whisper-transcribe --format srt,v"), "srt,vtt\n");
    EXPECT_EQ(complete("audio-decode ta"), "compopt -o filenames\ntalk.mp3\n");
    EXPECT_EQ(complete("whisper-transcribe --output-dir a"), "compopt -o filenames\na folder\n");
    EXPECT_EQ(complete("mel --nothing"), "\n");
    EXPECT_EQ(complete("hark model get sma"), "small\nsmall.en\n");
    EXPECT_EQ(complete("whisper-transcribe --language ger"), "german\n");
    EXPECT_EQ(complete("hark ask --whisper-model gpt"), "compopt -o filenames\n\n");
    EXPECT_EQ(complete("whisper-transcribe --model = de"), "compopt -o filenames\ndemo\n");
    expect_contains(complete("gpt-train --train \"\""), "synthetic\n");
    for (const char* tool : {"hark", "mel", "gpt-train", "hark-model"})
        expect_contains(shell(std::string("bash --norc -c '. \"$COMPLETIONS/hark.bash\"; "
                                          "complete -p ") +
                              tool + "'")
                            .out,
                        "-F _hark");
    // With a Tab.
    expect_contains(typed("bash --norc --noprofile -i",
                          ". \"$COMPLETIONS/hark.bash\"\nhark transc\t--show\ttalk.m\t--mod\tdemo\n"
                          "exit\n"),
                    "hark transcribe --show-pipe talk.mp3 --model demo");
}

TEST_F(Completion, Zsh) {
    const std::string start = "zsh -f -i";
    const std::string load =
        "PS1=; unsetopt zle_bracketed_paste 2> /dev/null; fpath=(\"$COMPLETIONS\" $fpath)\n"
        "autoload -U compinit; compinit -u -D\n";
    const std::string shown =
        typed(start, load + "hark transc\t--show\ttalk.m\t--mod\tdemo\nexit\n");
    expect_contains(shown, "audio-decode talk.mp3 | mel | whisper-transcribe --model demo");
}

TEST_F(Completion, Fish) {
    const auto complete = [&](const std::string& line) {
        const ProcessResult result =
            shell("fish --no-config -c 'source \"$COMPLETIONS/hark.fish\"; complete -C \"" + line +
                  "\"'");
        EXPECT_EQ(result.err, "");
        return result.out;
    };
    expect_contains(complete("hark "), "transcribe\trecordings to text");
    expect_contains(complete("hark transcribe --sh"), "--show-pipe\tprint the pipe ");
    EXPECT_EQ(complete("whisper-transcribe --task trans"), "transcribe\ntranslate\n");
    EXPECT_EQ(complete("whisper-transcribe --task=trans"), "--task=transcribe\n--task=translate\n");
    expect_contains(complete("whisper-transcribe --model whisper-m"), "whisper-mine\n");
    expect_contains(complete("audio-decode ta"), "talk.mp3");
    expect_contains(complete("whisper-transcribe --output-dir a"), "a folder/");
    expect_contains(complete("whisper-transcribe --output-dir=a"), "--output-dir=a folder/");
}

}  // namespace
}  // namespace hark::test
