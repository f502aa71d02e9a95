#include "core/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace hark {
namespace {

namespace fs = std::filesystem;

// A file's first line. Files of /proc and /sys have no size: read_file() finds them empty.
std::string first_line(const fs::path& path) {
    std::string line;
    std::getline(std::ifstream(path), line);
    return line;
}

// A whole number above 0; none for "max", -1 and all else.
std::optional<int64_t> positive(std::string_view text) {
    int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || number <= 0) return std::nullopt;
    return number;
}

// Cores that have `quota` microseconds of CPU time per `period` microseconds.
std::optional<int> cores_of(std::string_view quota, std::string_view period) {
    const std::optional<int64_t> time = positive(quota), of = positive(period);
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

std::optional<int> smaller(std::optional<int> a, std::optional<int> b) {
    return a && b ? std::min(*a, *b) : a ? a : b;
}

// The smallest of the cgroup `name` ("/a/b") and those above it. A container may have only its own
// cgroup mounted: names that are not there have no files.
std::optional<int> cores_up(const fs::path& mount, const std::string& name, bool v2) {
    std::optional<int> least = cores_of_folder(mount, v2);
    fs::path below = fs::path(name).relative_path();
    // ".." is a cgroup above this namespace's root.
    if (std::find(below.begin(), below.end(), "..") != below.end()) return least;
    for (; !below.empty(); below = below.parent_path())
        least = smaller(least, cores_of_folder(mount / below, v2));
    return least;
}

bool has_cpu(std::string_view controllers) {
    return ("," + std::string(controllers) + ",").find(",cpu,") != std::string::npos;
}

}  // namespace

std::optional<int> cgroup_cores(const fs::path& root) {
    std::ifstream groups(root / "proc/self/cgroup");
    const fs::path mounts = root / "sys/fs/cgroup";
    std::optional<int> least;
    // "0::/a/b" of version 2, "4:cpu,cpuacct:/a/b" of version 1
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string name = line.substr(second + 1);
        if (controllers.empty()) {
            for (const fs::path& mount : {mounts, mounts / "unified"})
                least = smaller(least, cores_up(mount, name, true));
        } else if (has_cpu(controllers)) {
            for (const std::string& mount : {std::string("cpu"), controllers})
                least = smaller(least, cores_up(mounts / mount, name, false));
        }
    }
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
