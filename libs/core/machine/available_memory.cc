#include "core/machine/available_memory.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "core/error.h"

namespace hark {
namespace {

int64_t memory_of_machine() {
    std::ifstream in("/proc/meminfo");
    for (std::string line; std::getline(in, line);) {
        constexpr std::string_view kName = "MemAvailable:";
        if (line.starts_with(kName)) return std::stoll(line.substr(kName.size())) * 1024;
    }
    struct sysinfo info {};
    require(::sysinfo(&info) == 0, "sysinfo: the machine's memory is not known");
    return static_cast<int64_t>(info.freeram) * info.mem_unit;
}

}  // namespace

int64_t available_memory() {
    const int64_t memory = memory_of_machine();
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return memory;
    return std::min(memory, static_cast<int64_t>(limit.rlim_cur));
}

}  // namespace hark
