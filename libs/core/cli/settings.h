// Values of flags from outside the command line: configuration files and environment variables.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hark {

// One line `key = value` of a configuration file.
struct Setting {
    std::string section;  // of the `[section]` before it; empty above the first
    std::string key, value;
    std::string where;          // "FILE:3"
    std::string section_where;  // the same of its section's line
};

// Reads an INI file: lines `key = value`, `[section]`, and comments from `#` at a line's start or
// after white space. Throws Error naming the file and line.
std::vector<Setting> read_settings(const std::filesystem::path& path);

// Base directories of the XDG specification: $XDG_CONFIG_HOME or ~/.config, $XDG_DATA_HOME or
// ~/.local/share. A relative path in these variables is ignored, as the specification says. Empty
// if neither the variable nor $HOME is set.
std::filesystem::path config_home();
std::filesystem::path data_home();
// The user's own configuration, config_home()/hark/config; empty if config_home() is.
std::filesystem::path user_config();

// Whether any tool has a flag of that name, and whether any tool has that name.
bool is_any_flag(const std::string& name);
bool is_any_tool(const std::string& name);

}  // namespace hark
