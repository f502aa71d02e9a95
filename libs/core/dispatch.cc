#include "core/dispatch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

struct NamedCommand {
    const char* name;
    const char* summary;
};

constexpr NamedCommand kCommands[] = {
    {"transcribe", "recordings to text, subtitles or tables"},
    {"live", "the microphone to text, while you speak"},
    {"ask", "a question about a recording, answered by a language model"},
    {"batch", "thousands of recordings, with one pipe that can be stopped"},
    {"train", "a text to a tokenizer and a small language model"},
    {"plot", "a picture of a transcript or of a training run"},
    {"model", "get, list, choose, remove, convert and verify models"},
};

constexpr const char* kExamples = R"(
Examples:
  hark model get small && hark model use small
  hark transcribe talk.mp3
  hark transcribe lectures/ --format srt --language en

hark help COMMAND describes a command; --show-pipe prints the pipe that it runs.
The tools of such a pipe have man pages: audio-decode, vad, mel,
whisper-transcribe, whisper-eval, gpt-generate, gpt-tokenize and gpt-train.
)";

fs::path own_folder() {
    std::error_code failed;
    return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

bool can_run(const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

bool is_listed(const std::string& command) {
    for (const NamedCommand& one : kCommands)
        if (command == one.name) return true;
    return false;
}

}  // namespace

std::string commands_help() {
    std::string text =
        "Usage: hark COMMAND [OPTION]... [ARGUMENT]...\n"
        "Speech to text to language model, as small Unix tools.\n"
        "\n"
        "Commands:\n";
    for (const NamedCommand& one : kCommands) {
        std::string name = one.name;
        name.resize(12, ' ');
        text += concat("  ", name, one.summary, "\n");
    }
    return text + kExamples;
}

std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const NamedCommand& one : kCommands) names.push_back(one.name);
    return names;
}

bool is_command_name(const std::string& word) {
    return !word.empty() && word[0] >= 'a' && word[0] <= 'z' &&
           word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

std::string program_of(const std::string& command) {
    const fs::path installed = own_folder() / "../libexec/hark" / command;
    if (can_run(installed)) return installed.string();
    const fs::path script = fs::path(HARK_SOURCE_PIPELINES) / (command + ".sh");
    if (is_listed(command) && can_run(script)) return script.string();
    return "hark-" + command;
}

void use_own_tools() {
    const char* given = std::getenv("PATH");
    const std::string path = given && *given ? given : "/usr/local/bin:/usr/bin:/bin";
    ::setenv("PATH", concat(own_folder().string(), ":", path).c_str(), 1);
}

}  // namespace hark
