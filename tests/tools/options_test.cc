// What the command lines of all tools have in common: one meaning of each option, help that fits a
// screen, and docs/cli.md, which is made from them.
#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <sstream>

#include "core/cli/version.h"
#include "tools/pipelines.h"

namespace hark::test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::vector<std::string> commands_of(const std::string& tool) {
    std::vector<std::string> names;
    for (const std::string& line : lines_of(run_shell(tool + " --help-as commands").out))
        names.push_back(line.substr(0, line.find('\t')));
    return names;
}

std::vector<std::string> made_list_of_tools() {
    std::vector<std::string> all = {
        "audio-decode", "vad",         "mel",         "whisper-transcribe", "whisper-eval",
        "gpt-generate", "gpt-eval",    "gpt-embed",   "gpt-tokenize",       "gpt-train",
        "hark-serve",   "hark-advise", "hark-doctor", "hark-redact"};
    for (const std::string tool : {"hark-model", "hark-shard", "hark-trace"})
        for (const std::string& command : commands_of(tool)) all.push_back(tool + " " + command);
    for (const std::string& command : commands_of("hark")) {
        if (command == "model" || command == "advise" || command == "doctor" || command == "help")
            continue;
        if (command != "plot") all.push_back("hark " + command);
    }
    for (const std::string& command : commands_of("hark plot"))
        all.push_back("hark plot " + command);
    return all;
}

// Each tool and each command, as it is typed.
const std::vector<std::string>& all_tools() {
    static const std::vector<std::string> kAll = made_list_of_tools();
    return kAll;
}

// The tool's table of options; it is asked once.
const std::string& table_of(const std::string& tool) {
    static std::map<std::string, std::string> tables;
    const auto [at, is_new] = tables.try_emplace(tool);
    if (is_new) at->second = run_shell(tool + " --help-as table").out;
    return at->second;
}

TEST(Options, HelpFitsOneScreen) {
    std::vector<std::string> all = all_tools();
    all.insert(all.end(), {"hark", "hark-model", "hark-shard", "hark-trace", "hark plot"});
    for (const std::string& tool : all) {
        const ProcessResult help = run_shell(tool + " --help");
        EXPECT_EQ(help.exit_code, 0) << tool << help.err;
        EXPECT_EQ(help.err, "") << tool;
        const std::vector<std::string> lines = lines_of(help.out);
        EXPECT_LE(lines.size(), 45u) << tool;
        for (const std::string& line : lines) EXPECT_LE(line.size(), 79u) << tool << ": " << line;
        EXPECT_EQ(lines[0].rfind("Usage: " + tool + " ", 0), 0u) << lines[0];
        EXPECT_NE(std::find(lines.begin(), lines.end(), "Examples:"), lines.end()) << help.out;
        EXPECT_GE(std::count_if(lines.begin(), lines.end(),
                                [](const std::string& line) {
                                    return !line.empty() && line[0] != ' ' && line.back() == ':';
                                }),
                  2)
            << help.out;
        if (tool.rfind("hark ", 0) == 0) continue;
        for (const std::string& line : lines_of(run_shell(tool + " --help-all").out))
            EXPECT_LE(line.size(), 79u) << tool << ": " << line;
    }
}

// Neither tools nor scripts set their help in lines of the terminal's width.
TEST(Options, HelpIsTheSameOnANarrowTerminal) {
    for (const std::string tool : {"mel", "hark", "hark transcribe", "hark plot run"})
        EXPECT_EQ(run_shell("COLUMNS=40 " + tool + " --help").out, run_shell(tool + " --help").out);
}

// The version is the build's, so that a tool of another installation is not taken for this one's.
TEST(Options, VersionHasCommitDevicesAndTypes) {
    int with_types = 0;
    for (const std::string& tool : all_tools()) {
        const ProcessResult shown = run_shell(tool + " --version");
        EXPECT_EQ(shown.exit_code, 0) << tool << shown.err;
        const std::vector<std::string> lines = lines_of(shown.out);
        ASSERT_GE(lines.size(), 3u) << tool << shown.out;
        EXPECT_EQ(lines[0], tool + " (hark) " + kVersion);
        EXPECT_TRUE(std::regex_match(lines[1], std::regex("commit: ([0-9a-f]{12}|unknown)")))
            << tool << shown.out;
        EXPECT_TRUE(std::regex_match(lines[2], std::regex("devices: cpu(, cuda)?")))
            << tool << shown.out;
        if (tool.starts_with("hark ")) continue;  // a script: whisper-transcribe's lines
        const std::string& table = table_of(tool);
        const size_t dtype = table.find("\ndtype\t");
        EXPECT_EQ(lines.size(), dtype == table.npos ? 3u : 4u) << tool << shown.out;
        if (lines.size() != 4) continue;
        ++with_types;
        EXPECT_TRUE(lines[3].starts_with("types: f32, ")) << tool << shown.out;
        EXPECT_EQ(lines[3].find("auto"), std::string::npos) << tool << shown.out;
    }
    EXPECT_GE(with_types, 5);
    const std::vector<std::string> own = lines_of(run_shell("hark --version").out);
    ASSERT_EQ(own.size(), 4u);
    EXPECT_EQ(own[0], std::string("hark ") + kVersion);
}

// Options that mean the same for each tool's own matter, and say which that is: --format of a
// report or of a transcript, --model of a tokenizer or of speech detection, --seed of samples or of
// a new model.
const std::set<std::string> kOwnWords = {
    "batch-size", "context", "dtype", "format", "input-format", "max-sequences", "memory-fraction",
    "model", "output-dir", "prompt", "reference", "repetition-penalty", "seed", "tokenizer",
    "vocab-size",
    // Of the machines that hark lambda rents.
    "api-key-file", "dry-run", "files-from", "keep", "price", "retry", "shard", "type"};
// Options that take other values in other tools: lists of formats, and one format; Whisper's tasks;
// what hark lambda says of the machines that it rents.
const std::set<std::string> kOwnValues = {"format",  "task", "api-key-file",
                                          "dry-run", "keep", "type"};

// The fields of one line of a tool's table: name, letter, value, switch, completion, choices, help.
std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string part; std::getline(in, part, '\t');) fields.push_back(part);
    return fields;
}

TEST(Options, HaveOneMeaning) {
    // By name: what each form and each help is of.
    std::map<std::string, std::map<std::string, std::string>> forms, helps;
    for (const std::string& tool : all_tools()) {
        const std::vector<std::string> lines = lines_of(table_of(tool));
        EXPECT_FALSE(lines.empty()) << tool;
        for (const std::string& line : lines) {
            const std::vector<std::string> field = fields_of(line);
            ASSERT_EQ(field.size(), 7u) << tool << ": " << line;
            const std::string& name = field[0];
            if (name == "-") continue;
            EXPECT_LE(field[6].size(), 70u) << tool << ": " << line;
            const std::string value = kOwnValues.contains(name) ? "" : field[2] + " " + field[3];
            forms[name]["-" + field[1] + " " + value] += tool + ", ";
            helps[name][kOwnWords.contains(name) ? "" : field[6]] += tool + ", ";
        }
    }
    for (const auto* by_name : {&forms, &helps})
        for (const auto& [name, meanings] : *by_name) {
            std::string all;
            for (const auto& [meaning, tools] : meanings) all += "\n  " + tools + meaning;
            EXPECT_EQ(meanings.size(), 1u) << "--" << name << all;
        }
}

TEST(Options, DocsAreMadeFromTheTools) {
    const ProcessResult made = run_shell("'" + (source_dir() / "docs/cli.sh").string() +
                                         "' \"$(dirname \"$(command -v mel)\")\"");
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.out, read_text(source_dir() / "docs/cli.md"))
        << "run docs/cli.sh build/bin > docs/cli.md";
}

// What the user's defaults get wrong is no mistake of the command line.
TEST(Options, AWrongDefaultIsNamedByItsSource) {
    const TemporaryDirectory directory;
    const std::string home = directory.path().string();
    for (const auto& [setting, tool, source] : std::vector<std::array<std::string, 3>>{
             {"HARK_DEVICE=cudaa", "whisper-transcribe -m demo", "HARK_DEVICE: --device"},
             {"HARK_DEVICE=cudaa", "gpt-generate -m demo -p x", "HARK_DEVICE: --device"},
             {"HARK_WHISPER_TRANSCRIBE_FORMAT=srtt", "whisper-transcribe -m demo",
              "HARK_WHISPER_TRANSCRIBE_FORMAT"},
             {"HARK_BEAM_SIZE=x", "whisper-transcribe -m demo", "HARK_BEAM_SIZE"}}) {
        const ProcessResult result = run_shell(setting + " " + tool + " < /dev/null");
        EXPECT_EQ(result.exit_code, 1) << setting << result.err;
        expect_contains(result.err, source);
    }
    write_text(directory.path() / "config", "device = cudaa\n");
    const ProcessResult file =
        run_shell("gpt-generate -m demo -p x --config '" + home + "/config' < /dev/null");
    EXPECT_EQ(file.exit_code, 1);
    expect_contains(file.err, "config:1: device: --device");
    EXPECT_EQ(run_shell("HARK_DEVICE=cpu gpt-generate -m demo -p x --device cudaa").exit_code, 2);
}

ProcessResult with_nothing_on_stdin(const std::string& command) {
    return run_shell(command + " < /dev/null");
}

TEST(Options, UnknownNamesOnTheCommandLineAreExitStatus2) {
    std::vector<std::string> all = all_tools();
    for (const std::string& tool : all) {
        const ProcessResult result = with_nothing_on_stdin(tool + " --xyzzy");
        EXPECT_EQ(result.exit_code, 2) << tool;
        expect_contains(result.err, "; try " + tool + " --help\n");
    }
    for (const std::string tool : {"hark", "hark-model", "hark-shard", "hark-trace", "hark plot"})
        EXPECT_EQ(with_nothing_on_stdin(tool + " xyzzy").exit_code, 2) << tool;
    all.insert(all.end(), {"hark", "hark-model", "hark-shard", "hark-trace", "hark plot"});
    for (const std::string& tool : all)
        expect_fails_without_output(with_nothing_on_stdin(tool + " --help-as xyzzy"), 2,
                                    "--help-as: unknown form 'xyzzy'; try ");
}

// Each option that takes one of a few words. A shell proposes languages and data, but others are
// taken too.
TEST(Options, UnknownWordsAreExitStatus2) {
    const std::set<std::string> open = {"language", "train", "val"};
    size_t tried = 0;
    for (const std::string& tool : all_tools()) {
        if (tool.starts_with("hark ")) continue;
        for (const std::string& line : lines_of(table_of(tool))) {
            const std::vector<std::string> field = fields_of(line);
            if (field[3] != "-" || field[5] == "-" || open.contains(field[0])) continue;
            const ProcessResult result = with_nothing_on_stdin(tool + " --" + field[0] + " xyzzy");
            EXPECT_EQ(result.exit_code, 2) << tool << " --" << field[0];
            expect_contains(result.err, "--" + field[0] + ": ");
            ++tried;
        }
    }
    EXPECT_GT(tried, 30u);
    const std::string key = "'" + (samples_dir() / "key.wav").string() + "'";
    for (const std::string& command : std::vector<std::string>{
             "mel --device gpu", "whisper-transcribe -m demo --device gpu",
             "gpt-generate -m demo -p x --device gpu", "gpt-eval -m demo --device gpu",
             "gpt-embed -m demo --device gpu", "hark-serve -m demo --device gpu",
             "gpt-train --train x --output-dir x --steps 1 --size 124M --device gpu",
             "hark transcribe " + key + " -m demo --device gpu",
             "hark ask " + key + " Who -m demo --device gpu",
             "hark live " + key + " -m demo --device gpu"}) {
        const ProcessResult result = with_nothing_on_stdin(command);
        EXPECT_EQ(result.exit_code, 2) << command << result.err;
        expect_contains(result.err,
                        "expected auto, cpu, cuda or cuda:N, got 'gpu'; did you mean "
                        "'cuda'?");
    }
}

// Whether a model is there depends on the machine.
TEST(Options, UnknownModelsAreExitStatus1) {
    const TemporaryDirectory home;
    const std::string key = "'" + (samples_dir() / "key.wav").string() + "'";
    for (const std::string& command : std::vector<std::string>{
             "whisper-transcribe -m xyzzy", "whisper-transcribe -m demo --draft-model xyzzy",
             "gpt-generate -p x -m xyzzy", "gpt-eval -m xyzzy", "gpt-eval -m demo --against xyzzy",
             "gpt-embed -m xyzzy", "hark-serve -m xyzzy", "gpt-tokenize -m xyzzy",
             "gpt-train --train x --output-dir x --steps 1 -m xyzzy", "hark-model use xyzzy",
             "hark-model rm xyzzy", "hark-model info xyzzy", "hark-model verify xyzzy",
             "hark-model convert xyzzy x", "hark transcribe " + key + " -m xyzzy",
             "hark ask " + key + " Who -m xyzzy", "hark live " + key + " -m xyzzy"}) {
        const ProcessResult result = with_nothing_on_stdin(
            "unset XDG_DATA_HOME; export HOME='" + home.path().string() + "'; cd; " + command);
        EXPECT_EQ(result.exit_code, 1) << command << result.err;
        expect_contains(result.err, "no model 'xyzzy'");
    }
    expect_fails_without_output(with_nothing_on_stdin("hark-model get xyzzy"), 2,
                                "no published model 'xyzzy'");
}

TEST(Options, TheAnswerToAFileHasWhatWasGiven) {
    const ProcessResult result =
        run_tool("whisper-transcribe", {"--model", "demo", "a b.mp3", "c.mp3", "--beam-size", "5"});
    EXPECT_EQ(result.exit_code, 2);
    expect_contains(result.err, "audio-decode 'a b.mp3' c.mp3 | mel | whisper-transcribe");
    expect_contains(result.err, " --model demo");
    expect_contains(result.err, " --beam-size 5");
}

}  // namespace
}  // namespace hark::test
