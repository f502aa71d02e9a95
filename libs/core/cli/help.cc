#include "core/cli/help.h"

#include <algorithm>
#include <sstream>

#include "core/cli/help_forms.h"
#include "core/error.h"

namespace hark {
namespace {

constexpr size_t kFlagColumn = 2, kMaxHelpColumn = 30;

// The flags of one section that are shown.
std::vector<const FlagInfo*> shown_in(const ToolDescription& tool, const std::string& section,
                                      bool all) {
    std::vector<const FlagInfo*> shown;
    for (const FlagInfo& flag : tool.flags)
        if (flag.section == section && (all || flag.essential)) shown.push_back(&flag);
    return shown;
}

void write_flag(std::ostream& out, const FlagInfo& flag, size_t column, bool all) {
    const std::string usage = flag_usage(flag), help = flag_help(flag, all);
    out << std::string(kFlagColumn, ' ') << usage;
    const size_t used = kFlagColumn + usage.size();
    if (used + 2 > column)
        out << "\n" << std::string(column, ' ');
    else
        out << std::string(column - used, ' ');
    out << wrapped(help, column) << "\n";
}

// The paragraphs of a text, wrapped; lines that are indented are kept.
std::string paragraphs(const std::string& text) {
    std::string all, paragraph;
    const auto end = [&] {
        if (!paragraph.empty()) all += wrapped(paragraph, 0) + "\n";
        paragraph.clear();
    };
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const bool is_prose = !line.empty() && line[0] != ' ';
        if (!is_prose) end();
        if (is_prose)
            paragraph += line + " ";
        else
            all += line + "\n";
    }
    end();
    return all;
}

void write_examples(std::ostream& out, const std::string& examples) {
    if (examples.empty()) return;
    out << "\nExamples:\n";
    std::istringstream lines(examples);
    for (std::string line; std::getline(lines, line);) out << "  " << line << "\n";
}

void write_commands(std::ostream& out, const ToolDescription& tool) {
    if (tool.commands.empty()) return;
    size_t width = 0;
    for (const CommandInfo& command : tool.commands) width = std::max(width, command.name.size());
    out << "\nCommands:\n";
    for (const CommandInfo& command : tool.commands)
        out << "  " << command.name << std::string(width + 2 - command.name.size(), ' ')
            << wrapped(command.summary, width + 4) << "\n";
}

}  // namespace

std::string flag_help(const FlagInfo& flag, bool all) {
    std::string text = flag.help;
    if (!flag.range.empty()) text += concat(" (", flag.range, ")");
    if (!flag.choices.empty()) {
        text += ":";
        for (const std::string& choice : flag.choices)
            text += (&choice == &flag.choices.front() ? " " : ", ") + choice;
    }
    if (!flag.shown_default.empty()) text += " [" + flag.shown_default + "]";
    if (all && !flag.details.empty()) text += ". " + flag.details;
    return text;
}

std::string wrapped(const std::string& text, size_t indent, size_t columns) {
    std::istringstream words(text);
    std::string result;
    size_t used = indent;
    for (std::string word; words >> word;) {
        if (used > indent && used + 1 + word.size() > columns) {
            result += "\n" + std::string(indent, ' ');
            used = indent;
        } else if (used > indent) {
            result += " ";
            ++used;
        }
        result += word;
        used += word.size();
    }
    return result;
}

std::string flag_usage(const FlagInfo& flag) {
    std::string text = flag.letter ? concat("-", flag.letter, ", ") : "    ";
    text += concat("--", flag.is_switch && flag.is_on ? "[no-]" : "", flag.name);
    return flag.metavar.empty() ? text : text + " " + flag.metavar;
}

std::string help_text(const ToolDescription& tool, bool with_all) {
    // A tool that marks none of its own flags as essential has few.
    const bool all =
        with_all || std::none_of(tool.flags.begin(), tool.flags.end(), [](const FlagInfo& flag) {
            return flag.essential && flag.section != kGeneralSection;
        });
    std::ostringstream out;
    out << "Usage: " << tool.help.name << (tool.commands.empty() ? "" : " COMMAND")
        << " [OPTION]..." << (tool.positional.empty() ? "" : " ") << tool.positional << "\n"
        << wrapped(tool.help.summary, 0) << "\n";
    if (!tool.positional_help.empty())
        out << wrapped(concat(tool.positional, ": ", tool.positional_help), 2) << "\n";
    if (with_all && *tool.help.description) out << "\n" << paragraphs(tool.help.description);
    write_commands(out, tool);
    write_examples(out, tool.help.examples);
    std::vector<std::string> sections;
    size_t column = 0;
    bool hidden = false;
    for (const FlagInfo& flag : tool.flags) {
        if (std::find(sections.begin(), sections.end(), flag.section) == sections.end())
            sections.push_back(flag.section);
        hidden = hidden || !flag.essential || !flag.details.empty();
        if (all || flag.essential)
            column = std::max(column, kFlagColumn + flag_usage(flag).size() + 2);
    }
    column = std::min(column, kMaxHelpColumn);
    for (const std::string& section : sections) {
        const std::vector<const FlagInfo*> shown = shown_in(tool, section, all);
        if (shown.empty()) continue;
        out << "\n" << section << ":\n";
        for (const FlagInfo* flag : shown) write_flag(out, *flag, column, all);
    }
    if (!tool.commands.empty())
        out << "\n" << tool.help.name << " COMMAND --help shows a command's options.\n";
    else if (!with_all && hidden)
        out << "\n" << tool.help.name << " --help-all shows all options.\n";
    return out.str();
}

}  // namespace hark
