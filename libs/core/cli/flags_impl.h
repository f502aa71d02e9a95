// The registered flags of a tool: shared by flags.cc, which registers them, and flag_sources.cc,
// which finds their values.
#pragma once

#include <deque>
#include <filesystem>
#include <map>

#include "core/cli/cli.h"

namespace hark {

struct Flags::Impl {
    struct Entry {
        FlagInfo info;
        std::function<void(const std::string&)> set;
    };
    // One value that was given for a flag, and by what: "--model", "HARK_MODEL", "FILE:3: model".
    struct Given {
        std::string text, where;
    };
    using Values = std::map<std::string, std::vector<Given>>;  // by the flag's name

    std::deque<Entry> entries;  // whose places do not change
    std::string section = "Options", positional_name, positional_help;
    Completes positional_completes = Completes::nothing;
    std::vector<std::string>* positional = nullptr;
    RejectArguments reject_arguments;
    std::string (*devices)() = nullptr;
    std::map<std::string, std::string> other_sources;  // of values not from the command line

    Flag add(const char* name, const std::string& shown_default, const char* help,
             std::function<void(const std::string&)> set);
    Entry* find(const std::string& name);
    void finish(const ToolHelp& help);
    ToolDescription describe(const ToolHelp& help) const;
    Values read_command_line(int argc, char** argv);
    void check_arguments(const std::vector<std::string>& arguments, const Values& values) const;
    Values read_variables() const;
    // `shared`: the file is for all tools, so an option of several meanings needs a section.
    Values read_config(const std::filesystem::path& path, const std::string& tool, bool shared);
    void take(const Values& values, bool command_line);
    std::string version(const ToolHelp& help);
    void fail_unknown(const std::string& name) const;
    std::vector<std::string> names() const;
};

}  // namespace hark
