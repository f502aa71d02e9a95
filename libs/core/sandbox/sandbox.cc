#include "core/sandbox/sandbox.h"

#include <sys/prctl.h>

#include "core/error.h"
#include "core/sandbox/landlock.h"
#include "core/sandbox/privacy.h"
#include "core/sandbox/system_call_filter.h"

namespace hark {
namespace {

bool has_entered = false;

}  // namespace

bool is_sandboxed() { return has_entered; }

std::string enter_sandbox(const std::vector<std::string>& readable) {
    has_entered = true;
    forbid_core_dumps();
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no_new_privs cannot be set";
    const std::string files = restrict_files(readable), calls = filter_system_calls();
    return files + (files.empty() || calls.empty() ? "" : "; ") + calls;
}

void SandboxOptions::flags(Flags& flags) {
    flags.add("sandbox", mode, {"off", "on", "require"}, "MODE whether to decode in a sandbox")
        .details(
            "on: the decoders can open the named files alone, and neither the network nor "
            "programs, as far as the kernel has Landlock and seccomp; a warning says what it "
            "lacks. require: that is an error.");
}

void SandboxOptions::enter(const std::vector<std::string>& readable, Console& console) const {
    if (mode == "off") return;
    const std::string lacking = enter_sandbox(readable);
    if (lacking.empty()) return;
    require(mode != "require", "--sandbox require: ", lacking);
    console.warning(concat("the sandbox is incomplete: ", lacking, "; --sandbox off is silent"));
}

}  // namespace hark
