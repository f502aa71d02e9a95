// hark COMMAND: finds the program of a command and becomes it, as git does.
//
//   libexec/hark/COMMAND, in the source tree pipelines/COMMAND.sh, then hark-COMMAND on the PATH,
//   which begins with the folder of this executable.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "core/cli/cli.h"
#include "core/cli/complete.h"
#include "core/cli/dispatch.h"
#include "core/cli/suggest.h"
#include "core/cli/version.h"
#include "core/error.h"
#include "core/machine/program_output.h"

namespace {

using namespace hark;
using Words = std::vector<std::string>;

std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const CommandInfo& command : hark_description().commands) names.push_back(command.name);
    return names;
}

// Becomes a program; returns only if that fails. `command` is what the user calls it.
[[noreturn]] void become(const std::string& program, Words arguments, const std::string& command) {
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execvp(program.c_str(), argv.data());
    const int why = errno;
    require_usage(why != ENOENT, "unknown command '", command, "'",
                  did_you_mean(command, command_names()));
    fail(command, ": cannot run ", program, ": ", std::strerror(why));
}

// Runs the command that the words begin with: "plot run" is plot-run if there is such a script.
// Returns a text to print, if it is not a program that prints it.
std::string run(const Words& words) {
    size_t taken = 1;
    std::string script = script_of(words[0]);
    if (words.size() > 1 && !script.empty()) {
        const std::string longer = script_of(words[0] + "-" + words[1]);
        if (!longer.empty()) script = longer, taken = 2;
    }
    const Words arguments(words.begin() + static_cast<std::ptrdiff_t>(taken), words.end());
    if (!script.empty() && arguments.size() == 2 && arguments[0] == "--help-as")
        return script_help_as(script, arguments[1]);
    require_usage(is_command_name(words[0]), "expected a command first, got '", words[0], "'");
    become(script.empty() ? "hark-" + words[0] : script, arguments, words[0]);
}

// hark's own, then the commit, the devices and the types of the tool that computes most.
std::string version() {
    const std::string tool = program_output({"whisper-transcribe", "--version"});
    const size_t line = tool.find('\n');
    return concat("hark ", kVersion, line == tool.npos ? "\n" : tool.substr(line));
}

std::string answer(Words words) {
    if (!words.empty() && words[0] == "--complete")
        return complete({words.begin() + 1, words.end()}, program_output);
    // The scripts of pipelines/ ask which of their flags a mistyped one stands for.
    if (words.size() > 1 && words[0] == "--nearest")
        return nearest(words[1], {words.begin() + 2, words.end()}) + "\n";
    const bool help = !words.empty() && words[0] == "help";
    if (help) words.erase(words.begin());
    const std::string first = words.empty() ? "--help" : words[0];
    if (first == "--help" || first == "-h") return help_text(hark_description(), false);
    if (first == "--help-all") return help_text(hark_description(), true);
    if (first == "--version") return version();
    if (first == "--help-as" && words.size() == 2) return help_as(hark_description(), words[1]);
    // A completion asks what may follow `hark help COMMAND`.
    if (help && std::find(words.begin(), words.end(), "--help-as") == words.end())
        words.push_back("--help");
    return run(words);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        use_own_tools();
        std::cout << answer({argv + 1, argv + argc});
        require(std::cout.flush().good(), "cannot write to stdout");
    } catch (const UsageError& wrong) {
        std::cerr << "hark: " << printable(wrong.what()) << "; try hark --help\n";
        return 2;
    } catch (const std::exception& failure) {
        std::cerr << "hark: " << printable(failure_text(failure)) << "\n";
        return 1;
    }
    return 0;
}
