// Gives up what a reader of strangers' files does not need: other files, the network, programs.
#pragma once

#include <string>
#include <vector>

#include "core/cli/cli.h"

namespace hark {

// What SandboxOptions::enter() does below, whatever the mode, but without a word. Returns what the
// kernel lacks, empty if nothing.
std::string enter_sandbox(const std::vector<std::string>& readable);

// Whether this process has entered one.
bool is_sandboxed();

struct SandboxOptions {
    std::string mode = "on";

    void flags(Flags& flags);  // --sandbox off|on|require

    // From here on this process can open the files and list the folders in `readable`, and nothing
    // else; it can neither write files, nor open sockets, nor start processes. Open descriptors
    // stay as they are. Names that are not there are passed over. Call it before threads start:
    // Landlock binds the calling thread and those that it starts.
    // What the kernel lacks is a warning on `console`; with `require` it throws Error.
    void enter(const std::vector<std::string>& readable, Console& console) const;
};

}  // namespace hark
