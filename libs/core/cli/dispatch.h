// The commands of `hark`: what they are called, what they do, and where their programs are.
#pragma once

#include <string>
#include <vector>

#include "core/cli/help.h"

namespace hark {

// hark itself, with its commands.
ToolDescription hark_description();

// Whether `word` can be a command's name: small letters, digits and dashes, a letter first.
bool is_command_name(const std::string& word);

// The script of a command: libexec/hark/COMMAND of the installation, or that of the source tree.
// Empty if there is none.
std::string script_of(const std::string& command);

// What --help-as FORM gives for a script, from its --help. The table has the flags of the tools
// that it passes flags to as well.
std::string script_help_as(const std::string& script, const std::string& form);

// Puts the folder of this executable first on the PATH.
void use_own_tools();

}  // namespace hark
