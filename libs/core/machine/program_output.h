// The output of another program.
#pragma once

#include <string>
#include <vector>

namespace hark {

// Runs the program argv[0], found on the PATH, with nothing on stdin and its messages dropped.
// Returns what it wrote to stdout; empty if it could not be run.
std::string program_output(std::vector<std::string> argv);

}  // namespace hark
