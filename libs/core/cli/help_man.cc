#include <algorithm>
#include <sstream>

#include "core/cli/help_forms.h"
#include "core/cli/tool_names.h"
#include "core/cli/version.h"
#include "core/error.h"

namespace hark {
namespace {

// Text without a line that roff takes for a request.
std::string roff(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
        if ((escaped.empty() || escaped.back() == '\n') && (c == '.' || c == '\''))
            escaped += "\\&";
        if (c == '\\')
            escaped += "\\e";
        else if (c == '-')
            escaped += "\\-";
        else
            escaped += c;
    }
    return escaped;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

// "hark-model get" has the page hark-model-get.
std::string page_name(std::string tool) {
    std::replace(tool.begin(), tool.end(), ' ', '-');
    return tool;
}

std::string in_upper_case(std::string text) {
    for (char& c : text)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return text;
}

std::string literal(const std::string& text) {
    return concat(".EX\n", roff(text), text.ends_with('\n') ? "" : "\n", ".EE\n");
}

// Paragraphs of prose; indented lines are kept as they are.
std::string prose(const std::string& text) {
    std::string page, kept;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("  ")) {
            kept += line + "\n";
            continue;
        }
        if (!kept.empty()) page += literal(kept);
        kept.clear();
        page += line.empty() ? ".PP\n" : roff(line) + "\n";
    }
    return kept.empty() ? page : page + literal(kept);
}

std::string entry(const std::string& tag, const std::string& text) {
    return concat(".TP\n", tag, "\n", roff(text), "\n");
}

std::string options_of(const ToolDescription& tool) {
    std::string page, section;
    for (const FlagInfo& flag : tool.flags) {
        if (flag.section != section) page += ".SS " + roff(flag.section) + "\n";
        section = flag.section;
        std::string tag = flag.letter ? bold(std::string("-") + flag.letter) + ", " : "";
        tag += bold(concat("--", flag.is_switch && flag.is_on ? "[no-]" : "", flag.name));
        if (!flag.metavar.empty()) tag += " " + italic(flag.metavar);
        page += entry(tag, flag_help(flag, true));
    }
    return page;
}

std::string environment_of(const ToolDescription& tool) {
    std::string page;
    for (const FlagInfo& flag : tool.flags)
        if (!flag.variable.empty())
            page += entry(bold(flag.variable), concat("sets --", flag.name));
    for (const std::string& other : tool.passes_to)
        page += entry(bold("HARK_") + italic("OPTION"),
                      concat("sets an option of ", other, ": see ", other, "(1)"));
    if (tool.help.uses_color)
        page += entry(bold("NO_COLOR"), "if it is set and not empty, --color auto means never");
    return page + entry(bold("XDG_CONFIG_HOME"), "folder of hark/config [~/.config]") +
           entry(bold("XDG_DATA_HOME"), "folder of hark/models [~/.local/share]");
}

std::string files_of(const ToolDescription& tool) {
    std::string page;
    std::istringstream lines(tool.help.files);
    for (std::string line; std::getline(lines, line);) {
        const size_t gap = line.find("  ");
        const size_t text = line.find_first_not_of(' ', gap);
        if (gap != std::string::npos && text != std::string::npos)
            page += entry(italic(line.substr(0, gap)), line.substr(text));
    }
    return page +
           entry(italic("~/.config/hark/config"),
                 "flags that are set unless the command line, --config or a variable does: lines "
                 "`name = value`, after a line [TOOL] for that tool alone") +
           entry(italic("~/.local/share/hark/models"), "the user's models");
}

std::string see_also(const std::string& page, const ToolDescription& tool) {
    std::vector<std::string> others;
    for (const CommandInfo& command : tool.commands)
        if (command.name != "help") others.push_back(page + "-" + page_name(command.name));
    if (page != "hark") others.push_back("hark");
    for (const char* other : kToolNames)
        if (page != other && std::find(others.begin(), others.end(), other) == others.end())
            others.push_back(other);
    std::string text;
    for (const std::string& other : others)
        text += concat(".BR ", roff(other), &other == &others.back() ? " (1)\n" : " (1),\n");
    return text;
}

std::string name_line(const std::string& page, std::string summary) {
    while (summary.ends_with('.')) summary.pop_back();
    return concat(roff(page), " \\- ", roff(summary), "\n");
}

}  // namespace

std::string man_page(const ToolDescription& tool) {
    const std::string page = page_name(tool.help.name);
    std::ostringstream out;
    out << ".TH " << roff(in_upper_case(page)) << " 1 \"\" \"hark " << kVersion
        << "\" \"User Commands\"\n.SH NAME\n"
        << name_line(page, tool.help.summary) << ".SH SYNOPSIS\n"
        << bold(tool.help.name) << (tool.commands.empty() ? "" : " " + italic("COMMAND")) << " ["
        << italic("OPTION") << "]..." << (tool.positional.empty() ? "" : " ")
        << roff(tool.positional) << "\n.SH DESCRIPTION\n"
        << roff(tool.help.summary) << "\n";
    if (!tool.positional_help.empty()) out << entry(italic(tool.positional), tool.positional_help);
    if (*tool.help.description) out << ".PP\n" << prose(tool.help.description);
    if (!tool.commands.empty()) out << ".SH COMMANDS\n";
    for (const CommandInfo& command : tool.commands)
        out << entry(bold(command.name), command.summary);
    if (!tool.flags.empty()) out << ".SH OPTIONS\n" << options_of(tool);
    if (*tool.help.examples) out << ".SH EXAMPLES\n" << literal(tool.help.examples);
    if (const std::string variables = environment_of(tool); !variables.empty())
        out << ".SH ENVIRONMENT\n" << variables;
    out << ".SH FILES\n"
        << files_of(tool) << ".SH EXIT STATUS\n"
        << entry("0", "all input was read and all output written")
        << entry("1", "the run failed, or a recording or prompt did; the others are done")
        << entry("2", "the command line was wrong") << ".SH SEE ALSO\n"
        << see_also(page, tool);
    return out.str();
}

}  // namespace hark
