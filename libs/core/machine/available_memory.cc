#include "core/machine/available_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "core/error.h"

namespace hark {

int64_t available_memory() {
    std::ifstream in("/proc/meminfo");
    for (std::string line; std::getline(in, line);) {
        constexpr std::string_view kName = "MemAvailable:";
        if (!line.starts_with(kName)) continue;
        const int64_t free = std::stoll(line.substr(kName.size())) * 1024;
        rlimit limit{};
        if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return free;
        return std::min(free, static_cast<int64_t>(limit.rlim_cur));
    }
    fail("/proc/meminfo: expected a line MemAvailable, found none");
}

}  // namespace hark
