#include <regex>
#include <sstream>

#include "core/cli/help_forms.h"

namespace hark {
namespace {

struct Reader {
    ScriptHelp script;
    std::string section, name, summary, description, examples;

    // "Usage: hark ask [OPTION]... RECORDING QUESTION"
    void usage(const std::string& line) {
        static const std::regex form(
            R"(Usage: ([a-z][a-z-]*( [a-z][a-z-]*)*)( COMMAND)?( \[OPTION\]\.\.\.)?( (.*))?)");
        std::smatch part;
        if (!std::regex_match(line, part, form)) return;
        name = part[1];
        script.tool.positional = part[6];
    }

    void passes_to(const std::string& line) {
        static const std::string start = "Also all options of: ";
        if (!line.starts_with(start)) return;
        std::istringstream words(line.substr(start.size()));
        for (std::string word; words >> word;) {
            while (word.ends_with(',') || word.ends_with('.')) word.pop_back();
            script.tool.passes_to.push_back(word);
        }
    }

    void flag(const std::string& line) {
        static const std::regex form(
            R"(  (-([a-zA-Z]), |    )--(\[no-\])?([a-z0-9-]+)( ([^ ]+))?  +(.*))");
        std::smatch part;
        std::vector<FlagInfo>& flags = script.tool.flags;
        if (!std::regex_match(line, part, form)) {
            const size_t text = line.find_first_not_of(' ');
            if (!flags.empty() && text != std::string::npos)
                flags.back().help += " " + line.substr(text);
            return;
        }
        FlagInfo info;
        info.section = section;
        if (part[2].matched) info.letter = part[2].str()[0];
        info.is_switch = info.is_on = part[3].matched;
        info.name = part[4];
        info.metavar = part[6];
        info.help = part[7];
        if (info.metavar == "MODEL") info.completes = Completes::model;
        if (info.metavar == "DIR") info.completes = Completes::directory;
        if (info.metavar == "FILE") info.completes = Completes::file;
        flags.push_back(info);
    }

    void command(const std::string& line) {
        std::istringstream words(line);
        CommandInfo info;
        words >> info.name >> std::ws;
        std::getline(words, info.summary);
        if (!info.name.empty()) script.tool.commands.push_back(info);
    }

    void line(const std::string& line) {
        static const std::regex heading("([A-Z][a-z ]*):");
        std::smatch part;
        if (std::regex_match(line, part, heading)) {
            section = part[1];
        } else if (section == "Commands") {
            command(line);
        } else if (section == "Examples") {
            if (!line.empty()) examples += line.substr(std::min<size_t>(line.size(), 2)) + "\n";
        } else if (!section.empty() && line.starts_with("  ")) {
            flag(line);
        } else if (!line.empty() || (!description.empty() && !description.ends_with("\n\n"))) {
            passes_to(line);
            description += line + "\n";
        }
    }

    const char* kept(std::string text) {
        while (text.ends_with('\n')) text.pop_back();
        return script.texts.emplace_back(std::move(text)).c_str();
    }
};

// "spoken language [auto]": the help ends with the default.
void set_default(FlagInfo& flag) {
    const size_t begin = flag.help.rfind(" [");
    if (begin == std::string::npos || !flag.help.ends_with(']')) return;
    flag.shown_default = flag.help.substr(begin + 2, flag.help.size() - begin - 3);
    flag.help.resize(begin);
}

}  // namespace

ScriptHelp parse_help(const std::string& text) {
    Reader reader;
    std::istringstream lines(text);
    std::string line;
    if (std::getline(lines, line)) reader.usage(line);
    while (std::getline(lines, line) && !line.empty()) {
        if (line.starts_with("   or: "))  // another form of the command
            reader.description += line + "\n\n";
        else
            reader.summary += (reader.summary.empty() ? "" : " ") + line;
    }
    while (std::getline(lines, line)) reader.line(line);
    for (FlagInfo& flag : reader.script.tool.flags) set_default(flag);
    ToolHelp& help = reader.script.tool.help;
    help.name = reader.kept(reader.name);
    help.summary = reader.kept(reader.summary);
    help.description = reader.kept(reader.description);
    help.examples = reader.kept(reader.examples);
    return std::move(reader.script);
}

std::string values_of_help(const std::string& help) {
    static const std::regex values("[a-z0-9]+(, [a-z0-9]+)+");
    if (!std::regex_match(help, values)) return "";
    return std::regex_replace(help, std::regex(", "), ",");
}

}  // namespace hark
