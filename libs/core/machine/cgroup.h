// The cgroups that limit this process.
// Source: Linux Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

// A cgroup's folder, with the files of version 2 (cpu.max) or of version 1 (cpu.cfs_quota_us).
struct CgroupFolder {
    std::filesystem::path path;
    bool v2 = true;
};

// Returns the folders of this process's cgroup with `controller` ("cpu", "memory") and of those
// above it, its own first. They need not exist: a container may have only its own cgroup mounted.
// `root` has proc/self/cgroup and sys/fs/cgroup.
std::vector<CgroupFolder> cgroup_folders(std::string_view controller,
                                         const std::filesystem::path& root = "/");

// A file's first line; empty if it cannot be read. Files of /proc and /sys have no size.
std::string first_line(const std::filesystem::path& path);

// A whole number above 0; none for "max", -1 and all else.
std::optional<int64_t> positive_number(std::string_view text);

// The smallest memory limit of this process's cgroup and those above it, in bytes; none if nothing
// limits it or no file can be read.
std::optional<int64_t> cgroup_memory(const std::filesystem::path& root = "/");

}  // namespace hark
