// hark COMMAND: finds the program of a command and becomes it, as git does.
//
//   libexec/hark/COMMAND, in the source tree pipelines/COMMAND.sh, then hark-COMMAND on the PATH,
//   which begins with the folder of this executable.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "core/dispatch.h"
#include "core/error.h"
#include "core/suggest.h"
#include "core/version.h"

namespace {

using namespace hark;

int wrong(const std::string& message) {
    std::cerr << "hark: " << message << "; try hark --help\n";
    return 2;
}

// Becomes the program of `command` with `arguments`; returns only if that fails.
int become(const std::string& command, const std::vector<std::string>& arguments) {
    use_own_tools();
    const std::string program = program_of(command);
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execvp(program.c_str(), argv.data());
    if (errno == ENOENT)
        return wrong("unknown command '" + command + "'" + did_you_mean(command, command_names()));
    std::cerr << "hark: " << command << ": cannot run " << program << ": " << std::strerror(errno)
              << "\n";
    return 1;
}

int show(const std::string& text) {
    std::cout << text;
    std::cout.flush();
    if (std::cout.good()) return 0;
    std::cerr << "hark: cannot write to stdout\n";
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    const auto is = [&](size_t i, std::initializer_list<const char*> choices) {
        return words.size() > i &&
               std::find(choices.begin(), choices.end(), words[i]) != choices.end();
    };
    if (words.empty() || is(0, {"--help", "-h"}) || (is(0, {"help"}) && words.size() == 1))
        return show(commands_help());
    if (is(0, {"--version"})) return show(concat("hark ", kVersion, "\n"));
    if (is(0, {"help"})) {
        if (words.size() > 2) return wrong("help: expected one command, got " + words[2] + " too");
        words = {words[1], "--help"};
    }
    if (!is_command_name(words[0]))
        return wrong("expected a command first, got '" + words[0] + "'");
    return become(words[0], {words.begin() + 1, words.end()});
}
