#include "core/machine/cores.h"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <thread>

#include "core/machine/cgroup.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

// Cores that have `quota` microseconds of CPU time per `period` microseconds.
std::optional<int> cores_of(std::string_view quota, std::string_view period) {
    const std::optional<int64_t> time = positive_number(quota), of = positive_number(period);
    if (!time || !of) return std::nullopt;
    const int64_t cores = *time / *of + (*time % *of > 0);
    return static_cast<int>(std::min<int64_t>(cores, std::numeric_limits<int>::max()));
}

std::optional<int> cores_of_folder(const fs::path& folder, bool v2) {
    if (!v2)
        return cores_of(first_line(folder / "cpu.cfs_quota_us"),
                        first_line(folder / "cpu.cfs_period_us"));
    const std::string line = first_line(folder / "cpu.max");  // "150000 100000", "max 100000"
    const size_t space = line.find(' ');
    if (space == line.npos) return std::nullopt;
    return cores_of(std::string_view(line).substr(0, space),
                    std::string_view(line).substr(space + 1));
}

}  // namespace

std::optional<int> cgroup_cores(const fs::path& root) {
    std::optional<int> least;
    for (const CgroupFolder& folder : cgroup_folders("cpu", root))
        if (const std::optional<int> cores = cores_of_folder(folder.path, folder.v2))
            least = std::min(least.value_or(*cores), *cores);
    return least;
}

int available_cores() {
    cpu_set_t set;
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0
                          ? CPU_COUNT(&set)
                          : static_cast<int>(std::thread::hardware_concurrency());  // above 1024
    return std::max(1, std::min(cores, cgroup_cores().value_or(cores)));
}

}  // namespace hark
