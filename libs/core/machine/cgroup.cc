#include "core/machine/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>

namespace hark {
namespace {

namespace fs = std::filesystem;

// The folders of the cgroup `name` ("/a/b") and of those above it, up to the mount.
void add_up(const fs::path& mount, const std::string& name, bool v2,
            std::vector<CgroupFolder>& folders) {
    fs::path below = fs::path(name).relative_path();
    // ".." is a cgroup above this namespace's root.
    if (std::find(below.begin(), below.end(), "..") != below.end()) below.clear();
    for (; !below.empty(); below = below.parent_path()) folders.push_back({mount / below, v2});
    folders.push_back({mount, v2});
}

bool has_controller(std::string_view controllers, std::string_view wanted) {
    const std::string all = "," + std::string(controllers) + ",";
    return all.find("," + std::string(wanted) + ",") != std::string::npos;
}

}  // namespace

std::string first_line(const fs::path& path) {
    std::string line;
    std::getline(std::ifstream(path), line);
    return line;
}

std::optional<int64_t> positive_number(std::string_view text) {
    int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || number <= 0) return std::nullopt;
    return number;
}

std::vector<CgroupFolder> cgroup_folders(std::string_view controller, const fs::path& root) {
    std::ifstream groups(root / "proc/self/cgroup");
    const fs::path mounts = root / "sys/fs/cgroup";
    std::vector<CgroupFolder> folders;
    // "0::/a/b" of version 2, "4:cpu,cpuacct:/a/b" of version 1
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const std::string name = line.substr(second + 1);
        if (controllers.empty()) {
            for (const fs::path& mount : {mounts, mounts / "unified"})
                add_up(mount, name, true, folders);
        } else if (has_controller(controllers, controller)) {
            for (const std::string& mount : {std::string(controller), controllers})
                add_up(mounts / mount, name, false, folders);
        }
    }
    return folders;
}

std::optional<int64_t> cgroup_memory(const fs::path& root) {
    constexpr int64_t kNoLimit = int64_t{1} << 60;  // version 1 says "none" by a number near 2^63
    std::optional<int64_t> least;
    for (const CgroupFolder& folder : cgroup_folders("memory", root)) {
        const char* const file = folder.v2 ? "memory.max" : "memory.limit_in_bytes";
        const std::optional<int64_t> limit = positive_number(first_line(folder.path / file));
        if (limit && *limit < kNoLimit) least = std::min(least.value_or(*limit), *limit);
    }
    return least;
}

}  // namespace hark
