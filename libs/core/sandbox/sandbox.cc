#include "core/sandbox/sandbox.h"

#include <sys/prctl.h>

#include "core/error.h"
#include "core/privacy.h"
#include "core/sandbox/landlock.h"
#include "core/sandbox/system_call_filter.h"

namespace hark {

void SandboxOptions::flags(Flags& flags) {
    flags
        .add("sandbox", mode, {"off", "on", "require"},
             "MODE of decoding media files without rights")
        .details(
            "on: the decoders can open the named files alone, and neither the network nor "
            "programs, as far as the kernel has Landlock and seccomp; a warning says what it "
            "lacks. require: that is an error.");
}

void SandboxOptions::enter(const std::vector<std::string>& readable, Console& console) const {
    if (mode == "off") return;
    forbid_core_dumps();
    std::string lacking;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        lacking = "no_new_privs cannot be set";
    } else {
        const std::string files = restrict_files(readable), calls = filter_system_calls();
        lacking = files + (files.empty() || calls.empty() ? "" : "; ") + calls;
    }
    if (lacking.empty()) return;
    require(mode != "require", "--sandbox require: ", lacking);
    console.warning(concat("the sandbox is incomplete: ", lacking, "; --sandbox off is silent"));
}

}  // namespace hark
