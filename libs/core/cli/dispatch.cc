#include "core/cli/dispatch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "core/cli/help_forms.h"
#include "core/error.h"
#include "core/machine/program_output.h"
#include "core/machine/program_path.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

const CommandInfo kCommands[] = {
    {"transcribe", "recordings to text, subtitles or tables"},
    {"live", "the microphone to text, while you speak"},
    {"ask", "a question about a recording, answered by a language model"},
    {"summarize", "minutes of the recordings of a folder, by a language model"},
    {"search", "lines of transcripts, found by their words or their meaning"},
    {"batch", "thousands of recordings, with one pipe that can be stopped"},
    {"worker", "shards of a large list of recordings, next to other workers"},
    {"parallel", "such shards on several machines, by GNU parallel over ssh"},
    {"slurm", "such shards on a cluster, by Slurm"},
    {"train", "a text to a tokenizer and a small language model"},
    {"lambda", "recordings or a training run on GPUs rented from Lambda"},
    {"plot", "a picture of a transcript or of a training run"},
    {"model", "get, list, use, rm, convert and verify models"},
    {"advise", "predict a model's speed and cost, and how to be faster"},
    {"doctor", "check this machine for what hark needs, and say what to do"},
    {"help", "describe a command"},
};

constexpr ToolHelp kHelp = {
    .name = "hark",
    .summary = "Speech to text to language model, as small Unix tools.",
    .description =
        "A command is a program: libexec/hark/COMMAND of the installation, else\n"
        "hark-COMMAND on the PATH, which begins with hark's own folder. Most commands run\n"
        "a pipe of tools (audio-decode, vad, mel, whisper-transcribe, gpt-generate), which\n"
        "--show-pipe prints.",
    .examples =
        "# get a model for speech, and make it the default\n"
        "hark model get small && hark model use small\n"
        "# a recording to text\n"
        "hark transcribe talk.mp3"};

fs::path own_folder() { return program_path().parent_path(); }

bool can_run(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

// Whether a command has no script: hark-COMMAND, or `hark` itself.
bool is_program(const std::string& command) {
    return command == "model" || command == "advise" || command == "doctor" || command == "help";
}

// Whether the source tree's script of this name is a command: "plot", "plot-run".
bool is_listed(const std::string& command) {
    for (const CommandInfo& one : kCommands)
        if (command == one.name || command.starts_with(one.name + "-")) return true;
    return false;
}

}  // namespace

ToolDescription hark_description() {
    ToolDescription tool;
    tool.help = kHelp;
    for (const CommandInfo& command : kCommands)
        if (is_program(command.name) || !script_of(command.name).empty())
            tool.commands.push_back(command);
    return tool;
}

bool is_command_name(const std::string& word) {
    return !word.empty() && word[0] >= 'a' && word[0] <= 'z' &&
           word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

std::string script_of(const std::string& command) {
    if (!is_command_name(command)) return "";
    const fs::path installed = own_folder() / "../libexec/hark" / command;
    if (can_run(installed)) return installed.string();
    const fs::path tree = HARK_SOURCE_TREE;  // empty in a package
    const fs::path script = tree / "pipelines" / (command + ".sh");
    return !tree.empty() && is_listed(command) && can_run(script) ? script.string() : "";
}

std::string script_help_as(const std::string& script, const std::string& form) {
    ScriptHelp help = parse_help(program_output({script, "--help"}));
    // A flag that a tool has too is described by the tool.
    std::string tools;
    std::set<std::string> names;
    for (const std::string& tool : help.tool.passes_to) {
        std::istringstream lines(program_output({tool, "--help-as", "table"}));
        for (std::string line; std::getline(lines, line);)
            if (!line.starts_with("-\t") && names.insert(line.substr(0, line.find('\t'))).second)
                tools += line + "\n";
    }
    help.tool.help.uses_color = names.contains("color");
    if (form != "table") return help_as(help.tool, form);
    std::erase_if(help.tool.flags, [&](const FlagInfo& flag) { return names.contains(flag.name); });
    return flag_table(help.tool) + tools;
}

void use_own_tools() {
    const char* given = std::getenv("PATH");
    const std::string path = given && *given ? given : "/usr/local/bin:/usr/bin:/bin";
    ::setenv("PATH", concat(own_folder().string(), ":", path).c_str(), 1);
}

}  // namespace hark
