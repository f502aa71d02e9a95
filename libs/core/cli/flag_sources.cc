#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <cstdlib>
#include <iostream>

#include "core/cli/flags_impl.h"
#include "core/cli/settings.h"
#include "core/cli/suggest.h"
#include "core/cli/version.h"

namespace hark {

namespace po = boost::program_options;

namespace {

// The name under which arguments without a flag are kept; no flag of its own.
constexpr const char* kPositional = "positional";
// Flags that neither a variable nor a configuration file sets: the tools of a pipe would write to
// the same file, or all runs would do something else.
constexpr const char* kCommandLineOnly[] = {"check",   "config",  "help",    "help-all",
                                            "help-as", "metrics", "profile", "version"};

// What other programs call a flag of ours.
const std::map<std::string, std::string> kOtherSpellings = {
    {"output-format", "format"},
    {"outdir", "output-dir"},
    {"out", "output-dir"},
    {"vocab", "tokenizer"},
    {"vad-filter", "vad"},
    {"compute-type", "dtype"},
    {"batch", "batch-size"},
    {"condition-on-previous-text", "previous-text"},
    {"without-timestamps", "timestamps"},
    {"temperature-increment-on-fallback", "fallback-temperatures"},
    {"clip-timestamps", "clip"},
    {"hallucination-silence-threshold", "hallucination-silence"},
    {"max-segment-length", "max-line-width"},
    {"print-colors", "color"},
    {"n-predict", "max-tokens"},
    {"max-new-tokens", "max-tokens"},
    {"temp", "temperature"},
    {"repeat-penalty", "repetition-penalty"},
    {"num-samples", "n"},
    {"lr", "learning-rate"},
    {"rate", "learning-rate"},
    {"length", "sequence-length"},
    {"lines", "input-format"},
    {"jsonl", "input-format"},
    {"n-threads", "threads"},
    {"jobs", "threads"},
};

std::string in_capitals(std::string text) {
    for (char& c : text) {
        const unsigned char byte = static_cast<unsigned char>(c);
        c = c == '-' || c == ' ' ? '_' : static_cast<char>(std::toupper(byte));
    }
    return text;
}

// Returns the arguments, with `--name=` as two of them: Boost refuses an empty text after `=`.
std::vector<std::string> split_empty_values(int argc, char** argv) {
    std::vector<std::string> words;
    bool flags = true;  // until `--`
    for (std::string word : std::span(argv, static_cast<size_t>(argc)).subspan(1)) {
        flags = flags && word != "--";
        const bool empty = flags && word.starts_with("--") && word.find('=') == word.size() - 1;
        if (empty) word.pop_back();
        words.push_back(word);
        if (empty) words.emplace_back();
    }
    return words;
}

// The flag with its dashes: "-dash.mp3", "--count".
std::string as_typed(const std::string& name, int argc, char** argv) {
    for (const std::string word : std::span(argv, static_cast<size_t>(argc)).subspan(1)) {
        if (word.substr(0, word.find('=')) == "--" + name) return "--" + name;
        if (word.starts_with('-') && !word.starts_with("--") && word.substr(1).starts_with(name))
            return "-" + name;
    }
    return (name.size() == 1 ? "-" : "--") + name;
}

}  // namespace

Flags::Impl::Entry* Flags::Impl::find(const std::string& name) {
    for (Entry& entry : entries)
        if (entry.info.name == name) return &entry;
    return nullptr;
}

std::vector<std::string> Flags::Impl::names() const {
    std::vector<std::string> all;
    for (const Entry& entry : entries) all.push_back(entry.info.name);
    return all;
}

// Adds the flags that every tool has, and gives each its variable.
void Flags::Impl::finish(const ToolHelp& help) {
    section = kGeneralSection;
    const auto nothing = [](const std::string&) {};
    add("config", "", "FILE read flags from FILE, one `name = value` per line", nothing)
        .completes(Completes::file);
    for (const auto& [name, text] : {std::pair("help,h", "print a short help and exit"),
                                     {"help-all", "print all options and exit"},
                                     {"version", "print the version and exit"}}) {
        add(name, "", text, nothing);
        entries.back().info.help = text;
        entries.back().info.metavar.clear();
        entries.back().info.essential = true;
    }
    std::string own = help.name;  // without what all variables begin with
    if (own.starts_with("hark-")) own.erase(0, 5);
    for (Entry& entry : entries) {
        FlagInfo& info = entry.info;
        const bool only_there = std::find(std::begin(kCommandLineOnly), std::end(kCommandLineOnly),
                                          info.name) != std::end(kCommandLineOnly);
        if (only_there || !info.variable.empty()) continue;
        info.variable =
            "HARK_" + in_capitals(info.own_variable ? concat(own, "-", info.name) : info.name);
    }
}

ToolDescription Flags::Impl::describe(const ToolHelp& help) const {
    ToolDescription tool;
    tool.help = help;
    tool.positional = positional_name;
    tool.positional_help = positional_help;
    tool.positional_completes = positional_completes;
    for (const Entry& entry : entries) tool.flags.push_back(entry.info);
    return tool;
}

void Flags::Impl::fail_unknown(const std::string& given) const {
    std::error_code failed;
    if (!positional_name.empty() && std::filesystem::exists(given, failed))
        throw UsageError(
            concat("unknown option '", given, "'; for the file of that name write ./", given));
    std::string plain = given;
    plain.erase(0, plain.find_first_not_of('-'));
    std::replace(plain.begin(), plain.end(), '_', '-');
    const std::vector<std::string> known = names();
    std::string name;
    const auto other = kOtherSpellings.find(plain);
    if (other != kOtherSpellings.end() &&
        std::find(known.begin(), known.end(), other->second) != known.end())
        name = other->second;
    else
        name = nearest(plain, known);
    throw UsageError(concat("unknown option '", given, "'",
                            name.empty() ? "" : concat("; did you mean '--", name, "'?")));
}

Flags::Impl::Values Flags::Impl::read_command_line(int argc, char** argv) {
    po::options_description known;
    for (const Entry& entry : entries) {
        const FlagInfo& info = entry.info;
        const std::string names =
            info.letter ? concat(info.name, ",", info.letter) : std::string(info.name);
        if (!info.metavar.empty()) {
            known.add_options()(names.c_str(), po::value<std::string>(), "");
            continue;
        }
        known.add_options()(names.c_str(), "");
        if (info.is_switch) known.add_options()(("no-" + info.name).c_str(), "");
    }
    known.add_options()("help-as", po::value<std::string>(), "");
    known.add_options()(kPositional, po::value<std::vector<std::string>>(), "");
    po::positional_options_description positions;
    positions.add(kPositional, -1);
    Values values;
    std::vector<std::string> arguments;
    try {
        po::command_line_parser parser(split_empty_values(argc, argv));
        // No abbreviations: a misspelt or shortened flag is an error, never a guess.
        parser.options(known).positional(positions).style(po::command_line_style::unix_style &
                                                          ~po::command_line_style::allow_guessing);
        for (const auto& option : parser.run().options) {
            std::string name = option.string_key, text = "true";
            if (name == kPositional && option.position_key >= 0) {
                arguments.insert(arguments.end(), option.value.begin(), option.value.end());
                continue;
            }
            if (name == kPositional) fail_unknown("--" + name);
            if (name.starts_with('-')) {  // how Boost names a short form
                const auto entry = std::find_if(entries.begin(), entries.end(),
                                                [&](auto& e) { return e.info.letter == name[1]; });
                name = entry->info.name;
            }
            const std::string where = "--" + name;
            if (!find(name) && name.starts_with("no-")) {
                name = name.substr(3);
                text = "false";
            }
            if (!option.value.empty()) text = option.value.front();
            values[name].push_back({text, where});
        }
    } catch (const po::unknown_option& wrong) {
        std::string name = wrong.get_option_name();
        name.erase(0, name.find_first_not_of('-'));
        fail_unknown(as_typed(name, argc, argv));
    } catch (const po::error& wrong) {
        throw UsageError(wrong.what());
    }
    for (const auto& [name, given] : values) {
        const Entry* entry = find(name);
        require_usage(given.size() == 1 || !entry || entry->info.is_repeated, "--", name,
                      ": given ", given.size(), " times, expected once");
    }
    if (!values.contains("help") && !values.contains("help-all"))
        check_arguments(arguments, values);
    if (positional) *positional = arguments;
    return values;
}

void Flags::Impl::check_arguments(const std::vector<std::string>& arguments,
                                  const Values& values) const {
    if (arguments.empty() || positional) return;
    std::string words, options;
    for (const std::string& argument : arguments)
        words += concat(words.empty() ? "" : " ", shell_word(argument));
    for (const auto& [name, given] : values)
        for (const Given& one : given) {
            const bool is_switch = one.text == "true" || one.text == "false";
            options += concat(" ", one.where, is_switch ? "" : " " + shell_word(one.text));
        }
    if (reject_arguments) throw UsageError(reject_arguments(words, options));
    throw UsageError(concat("takes no files, but reads stdin (got '", arguments.front(), "')"));
}

Flags::Impl::Values Flags::Impl::read_variables() const {
    Values values;
    for (const Entry& entry : entries) {
        if (entry.info.variable.empty()) continue;
        const char* const text = std::getenv(entry.info.variable.c_str());
        if (!text) continue;
        // An empty variable stands for the default of the flag itself.
        std::vector<Given>& given = values[entry.info.name];
        if (*text) given.push_back({text, entry.info.variable});
    }
    return values;
}

Flags::Impl::Values Flags::Impl::read_config(const std::filesystem::path& path,
                                             const std::string& tool, bool shared_file) {
    const std::string own = tool.substr(0, tool.find(' '));
    Values values;
    for (const Setting& setting : read_settings(path)) {
        require(setting.section.empty() || setting.section == own || is_any_tool(setting.section),
                setting.section_where, ": no tool has the name '", setting.section, "'");
        const Entry* entry = find(setting.key);
        // A key above the first section is for every tool that has the flag, and one of
        // hark-model's for every command that has it.
        const bool shared = setting.section != tool && is_any_flag(setting.key);
        require(entry || shared, setting.where, ": ",
                setting.section.empty() ? "no tool has an" : setting.section + " has no",
                " option '", setting.key, "'", did_you_mean(setting.key, names()));
        for (const char* name : kCommandLineOnly)
            require(setting.key != name, setting.where, ": '", setting.key,
                    "' belongs on the command line");
        if (!entry || (!setting.section.empty() && setting.section != own)) continue;
        require(!shared_file || !setting.section.empty() || !entry->info.own_variable,
                setting.where, ": '", setting.key,
                "' has a meaning of its own in each tool; put it ", "under [", own, "]");
        std::vector<Given>& given = values[setting.key];
        const std::string where = concat(setting.where, ": ", setting.key);
        // The tool's own section wins over the lines above the sections.
        if (!entry->info.is_repeated) given.clear();
        given.push_back({setting.value, where});
    }
    return values;
}

void Flags::Impl::take(const Values& values, bool command_line) {
    for (const auto& [name, given] : values) {
        Entry* entry = find(name);
        if (!entry) continue;
        for (const Given& one : given) try {
                entry->set(one.text);
            } catch (const Error& wrong) {
                const std::string message = concat(one.where, ": ", wrong.what());
                if (command_line) throw UsageError(message);
                fail(message);
            }
    }
}

std::string Flags::Impl::version(const ToolHelp& help) {
    std::string types;
    if (const Entry* dtype = find("dtype"))
        for (const std::string& type : dtype->info.choices)
            if (type != "auto") types += (types.empty() ? "" : ", ") + type;
    return version_text(help.name, devices ? devices() : "cpu", types);
}

bool Flags::parse(int argc, char** argv, const ToolHelp& help) {
    Impl& impl = *impl_;
    impl.finish(help);
    const Impl::Values given = impl.read_command_line(argc, argv);
    if (given.contains("help") || given.contains("help-all")) {
        std::cout << help_text(impl.describe(help), given.contains("help-all"));
        return false;
    }
    if (const auto form = given.find("help-as"); form != given.end()) {
        std::cout << help_as(impl.describe(help), form->second.front().text);
        return false;
    }
    if (given.contains("version")) {
        std::cout << impl.version(help);
        return false;
    }
    // The strongest source first.
    std::vector<Impl::Values> sources = {given};
    if (const auto config = given.find("config"); config != given.end()) {
        const std::string& path = config->second.front().text;
        require_usage(!path.empty(), "--config: expected a file, got an empty text");
        sources.push_back(impl.read_config(path, help.name, false));
    }
    sources.push_back(impl.read_variables());
    std::error_code failed;
    if (const auto path = user_config(); !path.empty() && std::filesystem::exists(path, failed))
        sources.push_back(impl.read_config(path, help.name, true));
    // A flag takes its values from the first source that has any.
    for (size_t source = sources.size(); source-- > 0;) {
        for (size_t stronger = 0; stronger < source; ++stronger)
            for (const auto& [name, values] : sources[stronger]) sources[source].erase(name);
        if (source > 0)
            for (const auto& [name, values] : sources[source])
                if (!values.empty()) impl.other_sources[name] = values.back().where;
        impl.take(sources[source], source == 0);
    }
    return true;
}

std::string Flags::sources_in(const std::string& message) const {
    // Whether the message names the flag, and not only a longer one: --batch, not --batch-size.
    const auto names = [&](const std::string& flag) {
        for (size_t at = message.find(flag); at != message.npos; at = message.find(flag, at + 1)) {
            const size_t end = at + flag.size();
            const bool longer =
                end < message.size() &&
                (std::isalnum(static_cast<unsigned char>(message[end])) || message[end] == '-');
            if (!longer) return true;
        }
        return false;
    };
    std::string found;
    for (const auto& [name, where] : impl_->other_sources)
        if (names("--" + name)) found += concat(found.empty() ? "" : ", ", where);
    return found;
}

}  // namespace hark
