// What a shell offers to complete a command line of hark or of one of its tools.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hark {

// Returns what a program writes to stdout.
using ProgramOutput = std::function<std::string(std::vector<std::string> argv)>;

// `words` is the command line up to the word that is being typed, which may be empty. Returns a
// line for each candidate, in full: the candidate, and after a tab its description if it has one. A
// last line says what else fits: ":file", ":directory" or ":" for nothing. `output` runs the tool,
// for its commands and flags (--help-as), and hark-model, for the installed models.
std::string complete(const std::vector<std::string>& words, const ProgramOutput& output);

}  // namespace hark
