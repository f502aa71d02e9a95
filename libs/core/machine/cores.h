// How many cores this process may use: the default number of threads.
#pragma once

#include <filesystem>
#include <optional>

namespace hark {

// Details of every flag --threads.
inline constexpr const char* kThreadsDetails =
    "0 takes the cores of the affinity mask, or fewer if the cgroup's CPU quota is lower.";

// The cores of the affinity mask (taskset, cpusets), at most as many as cgroup_cores() says.
int available_cores();

// The smallest CPU quota of this process's cgroup and those above it, in cores, rounded up; none
// if nothing limits them or a file cannot be read. `root` has proc/self/cgroup and sys/fs/cgroup.
// Source: Linux Documentation/admin-guide/cgroup-v2.rst, cpu.max; scheduler/sched-bwc.rst for v1.
std::optional<int> cgroup_cores(const std::filesystem::path& root = "/");

}  // namespace hark
