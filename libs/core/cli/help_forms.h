// Forms of a tool's description other than --help: for man, for docs/cli.md, and for other
// programs.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "core/cli/help.h"

namespace hark {

// A flag's help, its choices and its default; with `all` its details too.
std::string flag_help(const FlagInfo& flag, bool all);

// Returns a line for each flag, and one named - for the arguments without a flag: name, letter,
// metavar, "switch" if --no-NAME exists, what completes its value, its choices with commas, and
// help. Tabs separate the fields; - stands for an empty one, since a shell's `read` joins tabs.
std::string flag_table(const ToolDescription& tool);

// Returns a page for man, in roff.
std::string man_page(const ToolDescription& tool);

// Returns a section of docs/cli.md.
std::string markdown_section(const ToolDescription& tool);

// The help text of a script, read back.
struct ScriptHelp {
    ToolDescription tool;
    std::deque<std::string> texts;  // what `tool.help` points to
};

// Reads "Usage: NAME [OPTION]... ARGUMENTS", a summary up to an empty line, paragraphs, and the
// sections "Commands:", "Examples:" and of flags.
ScriptHelp parse_help(const std::string& text);

// Returns "a,b,c" for the help "a, b, c", nothing for a help with any other text.
std::string values_of_help(const std::string& help);

}  // namespace hark
