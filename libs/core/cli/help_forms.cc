#include "core/cli/help_forms.h"

#include <sstream>

#include "core/error.h"

namespace hark {
namespace {

// "whisper-model" if the variable or the name says which kind of model.
std::string completion_of(const FlagInfo& flag) {
    switch (flag.completes) {
        case Completes::file:
            return "file";
        case Completes::directory:
            return "directory";
        case Completes::model:
            if (flag.variable.find("WHISPER") != std::string::npos ||
                flag.name.starts_with("whisper-"))
                return "whisper-model";
            return flag.variable.find("GPT") != std::string::npos ? "gpt-model" : "model";
        case Completes::published_model:
            return "published-model";
        case Completes::nothing:
            break;
    }
    return "-";
}

// The values that a flag takes, with commas. A list's help may be nothing but its values.
std::string choices_of(const FlagInfo& flag) {
    std::string choices;
    for (const auto* values : {&flag.choices, &flag.suggests})
        for (const std::string& choice : *values) choices += (choices.empty() ? "" : ",") + choice;
    if (choices.empty() && flag.metavar.ends_with(",...")) choices = values_of_help(flag.help);
    return choices;
}

std::string table_line(const FlagInfo& flag, const std::string& completes) {
    const auto field = [](const std::string& text) { return (text.empty() ? "-" : text) + "\t"; };
    return field(flag.name) + field(flag.letter ? std::string(1, flag.letter) : "") +
           field(flag.metavar) + field(flag.is_switch ? "switch" : "") + field(completes) +
           field(choices_of(flag)) + (flag.help.empty() ? "-" : flag.help) + "\n";
}

std::string commands_of(const ToolDescription& tool) {
    std::string lines;
    for (const CommandInfo& command : tool.commands)
        lines += command.name + "\t" + command.summary + "\n";
    return lines;
}

}  // namespace

std::string flag_table(const ToolDescription& tool) {
    std::string table;
    for (const FlagInfo& flag : tool.flags) table += table_line(flag, completion_of(flag));
    if (tool.positional.empty()) return table;
    FlagInfo arguments;
    arguments.name = "-";
    arguments.metavar = tool.positional;
    arguments.help = tool.positional_help;
    arguments.completes = tool.positional_completes;
    if (arguments.completes == Completes::nothing)
        arguments.completes = tool.positional.find("MODEL") != std::string::npos
                                  ? Completes::model
                                  : Completes::file;
    return table + table_line(arguments, completion_of(arguments));
}

std::string markdown_section(const ToolDescription& tool) {
    std::ostringstream out;
    out << "### " << tool.help.name << "\n\n"
        << wrapped(tool.help.summary, 0, 118) << "\n\n    " << tool.help.name
        << (tool.commands.empty() ? " [OPTION]..." : " COMMAND [OPTION]...")
        << (tool.positional.empty() ? "" : " ") << tool.positional << "\n";
    for (const CommandInfo& command : tool.commands)
        out << (&command == &tool.commands.front() ? "\n" : "") << "- `" << command.name
            << "`: " << command.summary << "\n";
    std::string section;
    for (const FlagInfo& flag : tool.flags) {
        if (flag.section == kGeneralSection || flag.name == "help") continue;
        if (flag.section != section) out << "\n" << flag.section << ":\n\n";
        section = flag.section;
        std::string usage = flag_usage(flag);
        usage.erase(0, usage.find_first_not_of(' '));
        out << "- " << wrapped(concat("`", usage, "`: ", flag_help(flag, true)), 2, 118) << "\n";
    }
    return out.str() + "\n";
}

std::string help_as(const ToolDescription& tool, const std::string& form) {
    if (form == "names") {
        std::string names;
        for (const CommandInfo& command : tool.commands) names += command.name + "\n";
        for (const FlagInfo& flag : tool.flags) names += flag.name + "\n";
        return names;
    }
    if (form == "commands") return commands_of(tool);
    if (form == "table") return flag_table(tool);
    if (form == "man") return man_page(tool);
    if (form == "markdown") return markdown_section(tool);
    throw UsageError(concat("--help-as: unknown form '", form, "'"));
}

}  // namespace hark
