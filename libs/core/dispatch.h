// The commands of `hark`: what they are called, what they do, and where their programs are.
#pragma once

#include <string>
#include <vector>

namespace hark {

// One screen: each command with one line, and examples.
std::string commands_help();

// The names of the commands that it lists.
std::vector<std::string> command_names();

// Whether `word` can be a command's name: small letters, digits and dashes, a letter first.
bool is_command_name(const std::string& word);

// The path of the command's program: libexec/hark/COMMAND of the installation, or the script of
// the source tree. Otherwise its name, hark-COMMAND, to be found on the PATH.
std::string program_of(const std::string& command);

// Puts the folder of this executable first on the PATH.
void use_own_tools();

}  // namespace hark
