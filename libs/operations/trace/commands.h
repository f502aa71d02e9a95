// The commands of hark-trace: each parses its own command line and returns the exit status.
#pragma once

namespace hark::trace {

int merge_command(int argc, char** argv);
int watch_command(int argc, char** argv);
int summary_command(int argc, char** argv);

}  // namespace hark::trace
