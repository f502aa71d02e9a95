// hark COMMAND as a user types it: from the build, and from an installation.
#include <algorithm>

#include "tools/pipelines.h"

namespace hark::test {
namespace {

std::string quoted(const fs::path& path) { return "'" + path.string() + "'"; }
std::string quoted_sample(const std::string& name) { return quoted(samples_dir() / name); }

ProcessResult hark(const std::string& arguments, const std::string& input = "") {
    return run_shell("hark " + arguments, input);
}

TEST(Hark, ShowsItsCommandsOnOneScreen) {
    const ProcessResult shown = hark("--help");
    EXPECT_EQ(shown.exit_code, 0);
    EXPECT_LE(std::count(shown.out.begin(), shown.out.end(), '\n'), 28);
    for (const char* part : {"transcribe  ", "live  ", "ask  ", "batch  ", "plot  ", "model  ",
                             "Examples:", "hark transcribe talk.mp3"})
        expect_contains(shown.out, part);
    EXPECT_EQ(hark("").out, shown.out);
    EXPECT_EQ(hark("help").out, shown.out);
    EXPECT_EQ(hark("-h").out, shown.out);
    EXPECT_EQ(hark("--version").out.rfind("hark ", 0), 0u);
    EXPECT_EQ(hark("--help > /dev/full").exit_code, 1);
    for (const char* command :
         {"transcribe", "live", "ask", "summarize", "batch", "plot", "train"}) {
        const ProcessResult help = hark(std::string("help ") + command);
        EXPECT_EQ(help.exit_code, 0) << help.err;
        EXPECT_EQ(help.out.rfind(std::string("Usage: hark ") + command, 0), 0u) << help.out;
        expect_contains(help.out, "Options:\n");
        expect_contains(help.out, "Examples:\n");
        EXPECT_EQ(hark(std::string(command) + " --help").out, help.out);
    }
}

TEST(Hark, RefusesWhatIsNoCommand) {
    for (const char* wrong :
         {"trans", "../transcribe", "--modle", "''", "recordings.sh", "demo", "help trans"}) {
        const ProcessResult result = hark(wrong);
        EXPECT_EQ(result.exit_code, 2) << wrong;
        EXPECT_EQ(result.out, "");
        EXPECT_EQ(result.err.rfind("hark: ", 0), 0u) << result.err;
        expect_contains(result.err, "; try hark --help\n");
    }
    expect_contains(hark("trancsribe").err, "did you mean 'transcribe'?");
}

TEST(Hark, RunsProgramsOnThePathWithItsOwnToolsFirst) {
    Folder folder;
    const auto program = [&](const std::string& name, const std::string& text) {
        write_text(folder.path() / name, "#!/bin/sh\n" + text + "\n");
        fs::permissions(folder.path() / name, fs::perms::owner_all);
    };
    program("hark-echo", "echo \"$#:$2\"; command -v mel");
    program("mel", "echo not this one");
    const ProcessResult result =
        run_shell("PATH=\"$PATH:" + folder.path().string() + "\"; hark echo a 'b  c'");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.rfind("2:b  c\n", 0), 0u) << result.out;
    EXPECT_EQ(result.out.find(folder.path().string()), std::string::npos) << result.out;
    expect_contains(hark("model list").out, "whisper-demo");
    EXPECT_EQ(hark("model nonsense").exit_code, 2);
}

TEST(HarkTranscribe, WritesOneFormatToStandardOutput) {
    ProcessResult result = hark("transcribe --model demo " + quoted_sample("sea.wav"));
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, std::string(kSea) + "\n");
    EXPECT_EQ(result.err, "");
    result = hark("transcribe - --model=demo --format vtt", read_text(samples_dir() / "key.wav"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out.rfind("WEBVTT\n", 0), 0u);
    expect_contains(result.out, kKey);
    // Flags of audio-decode, and several recordings.
    result = hark("transcribe --duration 1.2 " + quoted_sample("sea.wav") + " --model demo");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.out.starts_with("He lived") && !result.out.ends_with("sea.\n"))
        << result.out;
    result = hark("transcribe " + quoted_sample("sea.wav") + " " + quoted_sample("key.wav") +
                  " --model demo");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_contains(result.out, std::string(kSea) + "\n");
    expect_contains(result.out, kKey);
}

TEST(HarkTranscribe, WritesFilesWhereSeveralFormatsOrAFolderAreAskedFor) {
    Folder folder;
    folder.copy("sea.wav", "in/deep/sea.wav");
    folder.copy("key.wav", "-key.wav");
    const std::string enter = "cd " + quoted(folder.path()) + "; hark transcribe --model demo ";
    ProcessResult result = run_shell(enter + "in ./-key.wav -- -key.wav --output-dir out");
    EXPECT_EQ(result.exit_code, 1);  // "--output-dir" is a recording after --
    result = run_shell(enter + "in --output-dir out -- -key.wav");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "");
    expect_contains(result.err, "1 of 2: in/deep/sea.wav -> ");
    expect_contains(result.err, "2 transcribed, 0 already there, 0 failed");
    EXPECT_TRUE(folder.names().contains("out/deep/sea.srt"));
    expect_contains(folder.text("out/-key.txt"), kKey);
    result = run_shell(enter + "in --format vtt");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(folder.text("in/deep/sea.vtt").rfind("WEBVTT\n", 0), 0u);
    result = run_shell(enter + "in/deep/sea.wav --format tsv,json --quiet");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(folder.names().contains("in/deep/sea.tsv"));
    // Done already, and once more on request.
    write_text(folder.path() / "in/deep/sea.tsv", "by hand");
    expect_contains(run_shell(enter + "in --format tsv,json").err, "0 transcribed, 1 already");
    EXPECT_EQ(folder.text("in/deep/sea.tsv"), "by hand");
    expect_contains(run_shell(enter + "in --format tsv,json --overwrite").err, "1 transcribed, 0 ");
    EXPECT_NE(folder.text("in/deep/sea.tsv"), "by hand");
    for (const std::string& name : folder.names()) EXPECT_EQ(name.find(".hark"), std::string::npos);
}

TEST(HarkTranscribe, SaysWhatIsWrongOnce) {
    Folder home;
    const struct {
        std::string arguments;
        int exit_code;
        const char* message;
    } kWrong[] = {
        {"", 2, "expected a recording"},
        {"none.mp3 --model demo", 1, "none.mp3: "},
        {quoted_sample("sea.wav") + " --model demo --langauge en", 2, "--langauge"},
        {quoted_sample("sea.wav") + " --model demo --start soon", 2, "'soon'"},
        {quoted_sample("sea.wav") + " --model demo --format docx,srt", 2, "docx"},
        {quoted_sample("sea.wav") + " --model demo --output-dir", 2, "--output-dir"},
        {quoted_sample("sea.wav") + " " + quoted_sample("key.wav") + " --model demo --format srt",
         2, "--output-dir DIR"},
        {"- --model demo --output-dir out", 2, "-: "},
        {quoted_sample("sea.wav") + " --model none", 1, "none"},
        {quoted_sample("sea.wav"), 1, "get"}};
    for (const auto& wrong : kWrong) {
        const ProcessResult result =
            run_shell("cd " + quoted(home.path()) + "; HOME=" + quoted(home.path()) +
                      " hark transcribe " + wrong.arguments);
        EXPECT_EQ(result.exit_code, wrong.exit_code) << wrong.arguments << result.err;
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, wrong.message);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
    EXPECT_EQ(home.names(), std::set<std::string>{});
}

// The pipe that a command shows gives the bytes that the command gives.
TEST(HarkShowPipe, CanBePasted) {
    Folder folder;
    folder.copy("sea.wav", "it's \"the\" $ea.wav");
    const std::string enter = "cd " + quoted(folder.path()) + "; ";
    const std::string sea = "'it'\\''s \"the\" $ea.wav'";
    for (const std::string& command :
         {"transcribe --model demo --duration 2 " + sea,
          "transcribe --model demo --format srt -- " + sea, "live --model demo " + sea,
          "ask --model demo --whisper-model demo " + sea + " 'Is it {}'\\''s $ea?'"}) {
        const std::string run = enter + "hark " + command;
        const ProcessResult shown =
            run_shell(std::string(run).insert(run.find(" --model"), " --show-pipe"));
        EXPECT_EQ(shown.exit_code, 0) << shown.err;
        EXPECT_EQ(std::count(shown.out.begin(), shown.out.end(), '\n'), 1) << shown.out;
        const ProcessResult piped = run_shell(enter + shown.out);
        EXPECT_EQ(piped.exit_code, 0) << piped.err;
        EXPECT_NE(piped.out, "");
        EXPECT_EQ(piped.out, run_shell(run).out) << shown.out;
    }
}

TEST(HarkShowPipe, WritesTheSameFiles) {
    for (const std::string command : {"transcribe in --model demo --format srt,text",
                                      "batch in --model demo --output-dir out --shard 1"}) {
        Folder shown, run;
        for (Folder* folder : {&shown, &run}) {
            folder->copy("sea.wav", "in/sea.wav");
            folder->copy("key.wav", "in/a key.wav");
        }
        const ProcessResult pipes =
            run_shell("cd " + quoted(shown.path()) + "; hark " + command + " --show-pipe");
        EXPECT_EQ(pipes.exit_code, 0) << pipes.err;
        EXPECT_EQ(shown.names(), (std::set<std::string>{"in/sea.wav", "in/a key.wav"}));
        EXPECT_EQ(run_shell("cd " + quoted(shown.path()) + "; " + pipes.out).exit_code, 0);
        EXPECT_EQ(run_shell("cd " + quoted(run.path()) + "; hark " + command).exit_code, 0);
        int64_t written = 0;
        for (const std::string& name : run.names()) {
            if (name.find(".hark") != std::string::npos || name.ends_with("failed.tsv")) continue;
            EXPECT_EQ(shown.text(name), run.text(name)) << name << " of " << pipes.out;
            ++written;
        }
        EXPECT_GE(written, 4);
    }
}

// A command's page names the variables of the tools whose options it takes.
TEST(HarkManPages, HaveEnvironmentAndFiles) {
    for (const char* command : {"", "transcribe", "live", "ask", "summarize", "batch", "train",
                                "plot", "plot run", "plot transcript"}) {
        const std::string page = hark(std::string(command) + " --help-as man").out;
        for (const char* section : {".SH ENVIRONMENT\n", ".SH FILES\n"})
            expect_contains(page, section);
    }
    for (const char* command : {"transcribe", "live", "batch", "plot transcript"}) {
        const std::string page = hark(std::string(command) + " --help-as man").out;
        expect_contains(page, "sets an option of whisper\\-transcribe: ");
        expect_contains(page, "\\fBNO_COLOR\\fR");
    }
    EXPECT_EQ(hark("ask --help-as man").out.find("NO_COLOR"), std::string::npos);
}

// A microphone that has samples/sea.wav in it.
TEST(HarkLive, WritesWhatTheMicrophoneHas) {
    Folder folder;
    write_text(folder.path() / "ffmpeg",
               "#!/bin/bash\necho \"$*\" >> " + quoted(folder.path() / "asked") +
                   "\n[[ \"$*\" != *broken* ]] || { echo 'no such device' >&2; exit 1; }\n" +
                   "[[ \"$*\" == *null* ]] || tail -c +45 " + quoted_sample("sea.wav") + "\n");
    fs::permissions(folder.path() / "ffmpeg", fs::perms::owner_all);
    const auto live = [&](const std::string& arguments) {
        return run_shell("PATH=\"$PATH:" + folder.path().string() + "\"; PATH=" +
                         quoted(folder.path()) + ":$PATH; hark live --model demo " + arguments);
    };
    ProcessResult result = live("--sound-system alsa --microphone hw:1");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, std::string(kSea) + "\n");
    EXPECT_EQ(result.err, "");
    expect_contains(folder.text("asked"), "-f alsa -i hw:1 -ac 1 -ar 16000 -f s16le -\n");
    result = live("--microphone broken");
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "cannot record from 'broken': no such device; name one");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(live("none.wav").exit_code, 1);
    EXPECT_EQ(live("none.wav --microphone default").exit_code, 2);
    result = live("--show-pipe --sound-system=alsa --microphone=hw:1");
    EXPECT_TRUE(result.out.starts_with("ffmpeg -v error -nostdin -f alsa -i hw:1 -ac 1 "))
        << result.out << result.err;
    EXPECT_EQ(live("--langauge en").exit_code, 2);
    result = hark("live - --model demo", read_text(samples_dir() / "sea.wav"));
    EXPECT_EQ(result.out, std::string(kSea) + "\n");
}

TEST(HarkAsk, PutsWhatIsSaidIntoThePrompt) {
    const std::string models = " --model demo --whisper-model demo --max-tokens 8";
    const ProcessResult asked =
        hark("ask " + quoted_sample("sea.wav") + " 'They said: {} And then'" + models);
    EXPECT_EQ(asked.exit_code, 0) << asked.err;
    EXPECT_EQ(asked.err, "");
    const auto answer = [](const std::string& prompt) {
        return run_tool("gpt-generate", {"--model", "demo", "--max-tokens", "8"}, prompt).out;
    };
    EXPECT_EQ(asked.out, answer(std::string("They said: ") + kSea + "  And then"));
    EXPECT_EQ(hark("ask " + quoted_sample("sea.wav") + " 'Where?'" + models).out,
              answer(std::string(kSea) + " \n\nQuestion: Where?\nAnswer:"));
    const ProcessResult shown =
        hark("ask --show-pipe x.wav Where? --whisper-model=demo --language=de");
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    expect_contains(shown.out, " --task transcribe --model demo --language de |");
}

TEST(HarkAsk, SaysWhatIsWrongOnce) {
    const std::string sea = quoted_sample("sea.wav");
    const struct {
        std::string arguments;
        int exit_code;
        const char* message;
    } kWrong[] = {
        {"", 2, "a recording and a question"},
        {sea, 2, "got 1"},
        {sea + " Where? now", 2, "got 3"},
        {sea + " Where? --modle demo", 2, "--modle"},
        {sea + " Where? --whisper-model", 2, "--whisper-model"},
        {sea + " Where? --language=", 2, "--language"},
        {sea + " Where? --model demo --prompt x", 2, "--prompt"},
        {"./none.wav Where? --model demo --whisper-model demo", 1, "./none.wav"},
        {sea + " Where? --model demo --whisper-model none", 1, "none"},
        {sea + " Where? --model none --whisper-model demo", 1, "none"},
    };
    for (const auto& wrong : kWrong) {
        const ProcessResult result = hark("ask " + wrong.arguments);
        EXPECT_EQ(result.exit_code, wrong.exit_code) << wrong.arguments << result.err;
        EXPECT_EQ(result.out, "");
        expect_contains(result.err, wrong.message);
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    }
}

TEST(HarkPlot, RunsTheScriptThatDraws) {
    const ProcessResult help = hark("plot run --help");
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.out, script("plot-run.sh", "--help").out);
    EXPECT_EQ(hark("plot").exit_code, 2);
    EXPECT_EQ(hark("plot nothing").exit_code, 2);
    expect_contains(hark("plot trans").err, "did you mean 'transcript'?");
}

// Everything that a user needs, without the source tree and with an empty home.
TEST(HarkInstall, IsWhole) {
    Folder folder;
    const std::string prefix = (folder.path() / "a prefix").string();
    const ProcessResult installed =
        run_shell("cmake --install '" + build_dir().string() + "' --prefix '" + prefix + "'");
    ASSERT_EQ(installed.exit_code, 0) << installed.err;
    const std::set<std::string> names = folder.names();
    for (const char* name : {"bin/hark",
                             "bin/whisper-transcribe",
                             "lib/hark/libhark-av.so",
                             "libexec/hark/transcribe",
                             "libexec/hark/live",
                             "libexec/hark/ask",
                             "libexec/hark/summarize",
                             "libexec/hark/batch",
                             "libexec/hark/lambda",
                             "libexec/hark/cloud/fleet.sh",
                             "libexec/hark/plot",
                             "libexec/hark/plot-transcript",
                             "libexec/hark/plot-run",
                             "libexec/hark/train",
                             "share/doc/hark/README.md",
                             "share/doc/hark/LICENSE",
                             "share/doc/hark/docs/formats.md",
                             "share/hark/models/whisper-demo/config.json",
                             "share/hark/presets/gpt-train/quick-test.conf",
                             "share/man/man1/mel.1",
                             "share/man/man1/hark.1",
                             "share/man/man1/hark-transcribe.1",
                             "share/man/man1/hark-plot-run.1",
                             "share/man/man1/hark-model-get.1",
                             "share/bash-completion/completions/mel",
                             "share/zsh/site-functions/_hark",
                             "share/fish/vendor_completions.d/hark.fish"})
        EXPECT_TRUE(names.contains(std::string("a prefix/") + name)) << name;
    fs::create_directory(folder.path() / "home");
    const auto hark = [&](const std::string& arguments) {
        return run_shell(
            "cd / && env -i PATH=/usr/bin:/bin HOME=" + quoted(folder.path() / "home") + " '" +
            prefix + "/bin/hark' " + arguments);
    };
    ProcessResult result = hark("transcribe " + quoted_sample("sea.wav") + " --model demo");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, std::string(kSea) + "\n");
    EXPECT_EQ(hark("live --model demo " + quoted_sample("sea.wav")).out, std::string(kSea) + "\n");
    result = hark("transcribe " + quoted_sample("sea.wav"));
    EXPECT_EQ(result.exit_code, 1);
    expect_contains(result.err, "model get");
    EXPECT_EQ(hark("plot run --help").exit_code, 0);
    EXPECT_TRUE(fs::is_empty(folder.path() / "home"));
    // A command by itself finds the tools too.
    result = run_shell("env -i PATH=/usr/bin:/bin '" + prefix + "/libexec/hark/transcribe' " +
                       quoted_sample("sea.wav") + " --model demo");
    EXPECT_EQ(result.out, std::string(kSea) + "\n") << result.err;
}

}  // namespace
}  // namespace hark::test
