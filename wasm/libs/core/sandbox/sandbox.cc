#include "core/sandbox/sandbox.h"

#include "core/error.h"

namespace hark {

std::string enter_sandbox(const std::vector<std::string>&) {
    return "the host of WebAssembly decides which files can be opened";
}

bool is_sandboxed() { return false; }

void SandboxOptions::flags(Flags& flags) {
    flags.add("sandbox", mode, {"off", "on", "require"}, "MODE whether to decode in a sandbox")
        .details(
            "off and on: WebAssembly's own, which has neither the network nor programs. require: "
            "an error, since the host decides which files can be opened.");
}

void SandboxOptions::enter(const std::vector<std::string>& readable, Console&) const {
    if (mode == "require") fail("--sandbox require: ", enter_sandbox(readable));
}

}  // namespace hark
