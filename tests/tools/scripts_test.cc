// Commands of hark that are scripts: what all of them share, and hark ask.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "tools/pipelines.h"

namespace hark::test {
namespace {

TEST(Scripts, ShowTheirHelp) {
    for (const std::string name :
         {"ask", "batch", "lambda", "live", "plot", "plot-run", "plot-roofline", "plot-transcript",
          "parallel", "search", "slurm", "summarize", "train", "transcribe", "worker", "demo",
          "verify-official"}) {
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
    std::string version = run_tool("whisper-transcribe", {"--version"}).out;
    ASSERT_TRUE(version.starts_with("whisper-transcribe (hark) ")) << version;
    version.erase(0, std::strlen("whisper-transcribe"));
    for (const std::string name :
         {"ask", "batch", "lambda", "live", "plot", "plot-run", "plot-transcript", "parallel",
          "search", "slurm", "summarize", "train", "transcribe", "worker"}) {
        std::string command = "hark " + name;
        std::replace(command.begin(), command.end(), '-', ' ');
        EXPECT_EQ(script(name + ".sh", "--version").out, command + version);
        const ProcessResult all = script(name + ".sh", "--help-all");
        EXPECT_EQ(all.exit_code, 0) << name << all.err;
        EXPECT_EQ(all.out, script(name + ".sh", "--help").out);
    }
    EXPECT_EQ(script("transcribe.sh", "talk.wav --version").out, "hark transcribe" + version);
}

// There is no pause after the last try.
TEST(Scripts, AModelOfARentedMachineIsTriedThreeTimes) {
    const ProcessResult tried =
        run_shell("cd '" + (source_dir() / "pipelines").string() +
                  "' && script=x && . ./help.sh && . ./flags.sh && . cloud/machine.sh\n"
                  "there() { [ \"$1\" = 'mkdir -p ../files' ] || { echo try >> /dev/fd/3; echo "
                  "why; return 1; }; }\n"
                  "pause() { echo \"pause $1\" >> /dev/fd/3; }\n"
                  "job_files=() job_models=(small)\n"
                  "send_files id 3>&1");
    EXPECT_EQ(tried.exit_code, 1);
    EXPECT_EQ(tried.out, "try\npause 30\ntry\npause 30\ntry\n");
    expect_contains(tried.err, "id: no model 'small' there: why");
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
             {"lambda", "--budge", "--budget"},
             {"worker", "--until-don", "--until-done"},
             {"parallel", "--sshlogn", "--sshlogin"},
             {"slurm", "--elemets", "--elements"},
             {"live", "--microphon", "--microphone"},
             {"ask", "--whisper_model", "--whisper-model"},
             {"ask", "--servr", "--server"},
             {"search", "--matchs", "--matches"},
             {"summarize", "--rewrit", "--rewrite"},
             {"train", "--prove_resume", "--prove-resume"},
             {"plot-transcript", "--beem-size", "--beam-size"}}) {
        const ProcessResult result = script(name + ".sh", given);
        EXPECT_EQ(result.exit_code, 2) << name << given;
        expect_contains(result.err, "unknown option '" + given + "'; did you mean '" + near + "'?");
        EXPECT_EQ(result.err.rfind("hark ", 0), 0u) << result.err;
    }
    expect_contains(script("batch.sh", "--zzzzzz").err, "unknown option '--zzzzzz'; try");
}

TEST(Scripts, AFolderThatCannotBeMadeIsNamed) {
    const TemporaryDirectory directory;
    const std::string file = directory.path() / "file";
    write_text(file, "");
    const std::string sample = "'" + (samples_dir() / "key.wav").string() + "'";
    for (const auto& [command, folder] : std::vector<std::pair<std::string, std::string>>{
             {"batch --model demo " + sample, file + "/.hark"},
             {"transcribe --model demo " + sample, file},
             {"train --steps 1 " + sample, file}}) {
        const std::string name = "hark " + command.substr(0, command.find(' '));
        const ProcessResult result = run_shell("hark " + command + " --output-dir '" + file + "'");
        EXPECT_EQ(result.exit_code, 1) << name;
        EXPECT_EQ(result.err.rfind(name + ": " + folder + ": cannot make this folder: ", 0), 0u)
            << result.err;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
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

TEST(Scripts, ChooseHowTheSoundGetsToTheTranscriber) {
    const DetectedLanguages by_themselves;
    Folder folder;
    folder.copy("sea.wav", "sea.wav");
    const std::string enter = "cd '" + folder.path().string() + "'; export XDG_CONFIG_HOME=$PWD; ";
    for (const char* command : {"transcribe", "live"}) {
        const ProcessResult result =
            run_shell(enter + "HARK_LIVE=true HARK_RAW=s16le HARK_MELS=128 hark " + command +
                      " -m demo -t 1 sea.wav");
        EXPECT_EQ(result.out, std::string(kSea) + "\n") << result.err;
    }
    EXPECT_EQ(run_shell(enter + "HARK_WORD_TIMESTAMPS=true hark live -m demo sea.wav").out,
              std::string(kSea) + "\n");
    fs::create_directories(folder.path() / "hark");
    write_text(folder.path() / "hark/config", "task = detect\n");
    const ProcessResult detected = run_shell(enter + "hark transcribe -m demo -t 1 sea.wav");
    EXPECT_EQ(detected.out.rfind("en\t", 0), 0u) << detected.out << detected.err;
}

TEST(AskScript, NamesItsFlagOfTheWhisperModel) {
    const ProcessResult unset = run_shell("XDG_DATA_HOME=/nowhere hark ask -m demo talk.mp3 What");
    EXPECT_EQ(unset.exit_code, 1);
    expect_contains(unset.err, "whisper-transcribe: no model is set; run: hark model get small");
    expect_contains(unset.err, "or give --whisper-model MODEL (--whisper-model demo is");
}

TEST(Scripts, ATerminalIsNoRecording) {
    // script(1) gives the command a terminal on stdin.
    const ProcessResult terminal =
        run_shell("script -qec 'hark transcribe --model demo -' /dev/null < /dev/null");
    EXPECT_EQ(terminal.exit_code, 2);
    EXPECT_EQ(terminal.out,
              "hark transcribe: stdin is a terminal, expected a recording through a pipe or from a "
              "file; try hark transcribe --help\r\n");
    const ProcessResult shown =
        run_shell("script -qec 'hark transcribe --model demo --show-pipe -' /dev/null < /dev/null");
    EXPECT_EQ(shown.out, "audio-decode - | mel | whisper-transcribe --model demo\r\n");
}

TEST(AskScript, AsksAboutPlainTextWhateverTheDefaultsAre) {
    const std::string sea = "'" + (samples_dir() / "sea.wav").string() + "'";
    const std::string command =
        "hark ask " + sea + " 'Is it {}?' -m demo --whisper-model demo --max-tokens 1 --seed 1";
    const ProcessResult plain = run_shell(command + " --echo");
    ASSERT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_EQ(plain.out.rfind("Is it " + std::string(kSea), 0), 0u) << plain.out;
    const std::string settings =
        "HARK_TIMES=true HARK_TASK=detect HARK_WHISPER_TRANSCRIBE_FORMAT=srt HARK_LIVE=true "
        "HARK_RAW=s16le HARK_GPT_GENERATE_INPUT_FORMAT=jsonl ";
    EXPECT_EQ(run_shell(settings + command + " --echo").out, plain.out);
    Folder home;
    fs::create_directories(home.path() / "hark");
    write_text(home.path() / "hark/config",
               "task = detect\nlive = true\nmax-words-per-line = 2\n"
               "[whisper-transcribe]\nformat = srt\noutput-dir = out\n");
    const ProcessResult asked = run_shell("export XDG_CONFIG_HOME='" + home.path().string() +
                                          "'; cd \"$XDG_CONFIG_HOME\"; " + command + " --echo");
    EXPECT_EQ(asked.out, plain.out) << asked.err;
    EXPECT_EQ(home.names(), (std::set<std::string>{"hark/config"}));
    const std::string half = "head -c 80270 '" + (samples_dir() / "story.mp3").string() + "'";
    const std::string of_half =
        half + " | hark ask - 'Who? {}' -m demo --whisper-model demo --max-tokens 1";
    EXPECT_EQ(run_shell(of_half).exit_code, 1);
    EXPECT_EQ(run_shell(of_half + " --allow-truncated").exit_code, 0);
}

}  // namespace
}  // namespace hark::test
