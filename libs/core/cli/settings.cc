#include "core/cli/settings.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "core/cli/tool_names.h"
#include "core/error.h"
#include "core/files/files.h"
#include "core/ranges.h"

namespace hark {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// Made by cmake/flag_names.sh from the tools' own tables; a test compares.
constexpr const char* kFlagNames[] = {
#include "core/cli/flag_names.inc"
};

std::string trimmed(const std::string& text) {
    const size_t begin = text.find_first_not_of(" \t\r");
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string without_comment(const std::string& line) {
    for (size_t at = line.find('#'); at != std::string::npos; at = line.find('#', at + 1))
        if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
    return line;
}

// The directory that `variable` names, or `fallback` under $HOME.
fs::path base_directory(const char* variable, const char* fallback) {
    const char* const given = std::getenv(variable);
    if (given && *given == '/') return given;
    const char* const home = std::getenv("HOME");
    return home && *home ? fs::path(home) / fallback : fs::path();
}

}  // namespace

std::vector<Setting> read_settings(const fs::path& path) {
    std::istringstream in(read_file(path, kMaxConfigBytes));
    std::vector<Setting> settings;
    std::string section, section_where;
    int number = 0;
    for (std::string raw; std::getline(in, raw);) {
        const std::string where = concat(path.string(), ":", ++number);
        const std::string line = trimmed(without_comment(raw));
        if (line.empty()) continue;
        if (line.front() == '[') {
            require(line.back() == ']', where, ": a section lacks its ']' (got '", line, "')");
            section = trimmed(line.substr(1, line.size() - 2));
            section_where = where;
            continue;
        }
        const size_t equals = line.find('=');
        require(equals != std::string::npos && equals > 0, where,
                ": not a line of the form `key = value` (got '", line, "')");
        settings.push_back({section, trimmed(line.substr(0, equals)),
                            trimmed(line.substr(equals + 1)), where, section_where});
    }
    return settings;
}

fs::path config_home() { return base_directory("XDG_CONFIG_HOME", ".config"); }
fs::path data_home() { return base_directory("XDG_DATA_HOME", ".local/share"); }

fs::path user_config() {
    const fs::path home = config_home();
    return home.empty() ? home : home / "hark" / "config";
}

bool is_any_flag(const std::string& name) { return contains(kFlagNames, name); }
bool is_any_tool(const std::string& name) { return contains(kToolNames, name); }

}  // namespace hark
