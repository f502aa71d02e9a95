#include "core/sandbox/privacy.h"

#include <sys/prctl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <string_view>

#include "core/sandbox/sanitized.h"

namespace hark {

// A limit of 0 bytes is not enough: a program that takes the dumps (systemd-coredump) gets them all
// the same.
void forbid_core_dumps() {
    if (!kSanitized) ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void keep_private() {
    forbid_core_dumps();
    ::umask(077);
}

bool is_offline() {
    const char* const value = std::getenv("HARK_OFFLINE");
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace hark
