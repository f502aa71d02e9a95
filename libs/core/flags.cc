#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>

#include "core/cli.h"
#include "core/settings.h"
#include "core/suggest.h"
#include "core/version.h"

namespace hark {

namespace po = boost::program_options;

namespace {

// The name under which arguments without a flag are kept; no flag of its own.
constexpr const char* kPositional = "positional";
// Flags that neither a variable nor a configuration file sets.
constexpr const char* kCommandLineOnly[] = {"config", "help", "help-all", "help-as", "version"};

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

// "HZ samples per second" -> {"HZ", "samples per second"}; without a leading word in capitals,
// {"VALUE", help}.
std::pair<std::string, std::string> split_metavar(const std::string& help) {
    const size_t end = help.find(' ');
    const std::string word = help.substr(0, end);
    const bool capitals =
        word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ|,.:") == std::string::npos;
    if (end == std::string::npos || !capitals || word.size() < 1) return {"VALUE", help};
    return {word, help.substr(end + 1)};
}

std::string number_text(double x) {
    std::ostringstream out;
    out << x;
    return out.str();
}

template <class Values, class Text>
std::string joined(const Values& values, const char* separator, Text text) {
    std::string all;
    for (const auto& value : values) all += (all.empty() ? "" : separator) + text(value);
    return all;
}

std::string joined(const std::vector<std::string>& values, const char* separator) {
    return joined(values, separator, [](const std::string& value) { return value; });
}

// Errors of values do not name their flag: whoever knows where the value came from does.
double parse_number(const std::string& text, double min, double max) {
    size_t used = 0;
    double value = 0;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    require(used == text.size() && used > 0 && value >= min && value <= max,
            "expected a number from ", number_text(min), " to ", number_text(max), ", got '", text,
            "'");
    return value;
}

int64_t parse_whole_number(const std::string& text, int64_t min, int64_t max) {
    size_t used = 0;
    int64_t value = 0;
    try {
        value = std::stoll(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    require(used == text.size() && used > 0 && value >= min && value <= max,
            "expected a whole number from ", min, " to ", max, ", got '", text, "'");
    return value;
}

bool parse_switch(const std::string& text) {
    for (const char* yes : {"true", "yes", "on", "1"})
        if (text == yes) return true;
    for (const char* no : {"false", "no", "off", "0"})
        if (text == no) return false;
    fail("expected true or false, got '", text, "'");
}

std::vector<std::string> split_commas(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
    return parts;
}

std::string in_capitals(std::string text) {
    for (char& c : text) {
        const unsigned char byte = static_cast<unsigned char>(c);
        c = c == '-' || c == ' ' ? '_' : static_cast<char>(std::toupper(byte));
    }
    return text;
}

}  // namespace

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
    std::vector<std::string>* positional = nullptr;
    std::function<std::string(const std::string&)> hint;

    Flag add(const char* name, const std::string& shown_default, const char* help,
             std::function<void(const std::string&)> set);
    Entry* find(const std::string& name);
    void finish(const ToolHelp& help);
    ToolDescription describe(const ToolHelp& help) const;
    Values read_command_line(int argc, char** argv);
    void check_arguments(const std::vector<std::string>& arguments) const;
    Values read_variables() const;
    Values read_config(const std::filesystem::path& path, const std::string& tool);
    void take(const Values& values, bool command_line);
    void fail_unknown(const std::string& name) const;
    std::vector<std::string> names() const;
};

Flags::Flags() : impl_(std::make_unique<Impl>()) {}
Flags::~Flags() = default;

void Flags::section(const char* title) { impl_->section = title; }

Flag Flags::Impl::add(const char* name, const std::string& shown_default, const char* help,
                      std::function<void(const std::string&)> set) {
    Entry entry;
    const std::string names = name;
    entry.info.name = names.substr(0, names.find(','));
    if (names.size() > entry.info.name.size() + 1) entry.info.letter = names.back();
    std::tie(entry.info.metavar, entry.info.help) = split_metavar(help);
    entry.info.shown_default = shown_default;
    entry.info.section = section;
    entry.set = std::move(set);
    entries.push_back(std::move(entry));
    return Flag(entries.back().info);
}

Flag Flags::add(const char* name, std::string& value, const char* help) {
    return impl_->add(name, value, help, [&value](const std::string& text) { value = text; });
}

Flag Flags::add_name(const char* name, std::string& value, const char* help) {
    return impl_->add(name, value, help, [&value](const std::string& text) {
        require(!text.empty(), "expected a name, got an empty text");
        value = text;
    });
}

Flag Flags::add(const char* name, int64_t& value, const char* help, int64_t min, int64_t max) {
    return impl_->add(name, std::to_string(value), help, [=, &value](const std::string& text) {
        value = parse_whole_number(text, min, max);
    });
}

Flag Flags::add(const char* name, double& value, const char* help, double min, double max) {
    return impl_->add(name, number_text(value), help, [=, &value](const std::string& text) {
        value = parse_number(text, min, max);
    });
}

Flag Flags::add(const char* name, std::optional<double>& value, const char* help, double min,
                double max) {
    const bool has_default = value.has_value();
    return impl_->add(name, value ? number_text(*value) : "", help,
                      [=, &value](const std::string& text) {
                          if (has_default && text == "none")
                              value.reset();
                          else
                              value = parse_number(text, min, max);
                      });
}

Flag Flags::add(const char* name, std::vector<double>& value, const char* help, double min,
                double max) {
    return impl_->add(name, joined(value, ",", number_text), help,
                      [=, &value](const std::string& text) {
                          std::vector<double> numbers;
                          for (const std::string& part : split_commas(text))
                              numbers.push_back(parse_number(part, min, max));
                          require(!numbers.empty(), "expected at least one number");
                          value = numbers;
                      });
}

Flag Flags::add(const char* name, std::vector<std::string>& value, const char* help) {
    return impl_->add(name, joined(value, ","), help, [&value](const std::string& text) {
        require(!text.empty(), "expected at least one, got an empty text");
        value = split_commas(text);
    });
}

Flag Flags::add(const char* name, std::string& value, const std::vector<std::string>& choices,
                const char* help) {
    Flag flag = impl_->add(name, value, help, [=, &value](const std::string& given) {
        require(std::find(choices.begin(), choices.end(), given) != choices.end(),
                "expected one of ", joined(choices, ", "), ", got '", given, "'",
                did_you_mean(given, choices));
        value = given;
    });
    impl_->entries.back().info.choices = choices;
    return flag;
}

Flag Flags::add_switch(const char* name, bool& value, const char* help) {
    Flag flag = impl_->add(name, "", help,
                           [&value](const std::string& text) { value = parse_switch(text); });
    FlagInfo& info = impl_->entries.back().info;
    info.metavar.clear();
    info.help = help;
    info.is_switch = true;
    info.is_on = value;
    return flag;
}

Flag Flags::add_repeated(const char* name, std::vector<std::string>& values, const char* help) {
    Flag flag =
        impl_->add(name, "", help, [&values](const std::string& text) { values.push_back(text); });
    impl_->entries.back().info.is_repeated = true;
    return flag;
}

void Flags::positional(const char* name, std::vector<std::string>& values, const char* help) {
    impl_->positional_name = name;
    impl_->positional_help = help;
    impl_->positional = &values;
}

void Flags::reject_arguments(std::function<std::string(const std::string&)> hint) {
    impl_->hint = std::move(hint);
}

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
    for (Entry& entry : entries) {
        FlagInfo& info = entry.info;
        const bool only_there = std::find(std::begin(kCommandLineOnly), std::end(kCommandLineOnly),
                                          info.name) != std::end(kCommandLineOnly);
        if (only_there || !info.variable.empty()) continue;
        info.variable = "HARK_" + in_capitals(concat(info.own_variable ? help.name : "",
                                                     info.own_variable ? "-" : "", info.name));
    }
}

ToolDescription Flags::Impl::describe(const ToolHelp& help) const {
    ToolDescription tool{help, positional_name, positional_help, {}, {}};
    for (const Entry& entry : entries) tool.flags.push_back(entry.info);
    return tool;
}

void Flags::Impl::fail_unknown(const std::string& given) const {
    std::string plain = given;
    std::replace(plain.begin(), plain.end(), '_', '-');
    const std::vector<std::string> known = names();
    std::string name;
    const auto other = kOtherSpellings.find(plain);
    if (other != kOtherSpellings.end() &&
        std::find(known.begin(), known.end(), other->second) != known.end())
        name = other->second;
    else
        name = nearest(plain, known);
    throw UsageError(concat("unknown option '--", given, "'",
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
        po::command_line_parser parser(argc, argv);
        // No abbreviations: a misspelt or shortened flag is an error, never a guess.
        parser.options(known).positional(positions).style(po::command_line_style::unix_style &
                                                          ~po::command_line_style::allow_guessing);
        for (const auto& option : parser.run().options) {
            std::string name = option.string_key, text = "true";
            if (name == kPositional && option.position_key >= 0) {
                arguments.insert(arguments.end(), option.value.begin(), option.value.end());
                continue;
            }
            if (name == kPositional) fail_unknown(name);
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
        fail_unknown(name);
    } catch (const po::error& wrong) {
        throw UsageError(wrong.what());
    }
    for (const auto& [name, given] : values) {
        const Entry* entry = find(name);
        require_usage(given.size() == 1 || !entry || entry->info.is_repeated, "--", name,
                      ": given ", given.size(), " times, expected once");
    }
    if (!values.contains("help") && !values.contains("help-all")) check_arguments(arguments);
    if (positional) *positional = arguments;
    return values;
}

void Flags::Impl::check_arguments(const std::vector<std::string>& arguments) const {
    if (arguments.empty() || positional) return;
    require_usage(!hint, hint ? hint(arguments.front()) : "");
    throw UsageError(concat("takes no files, but reads stdin (got '", arguments.front(), "')"));
}

Flags::Impl::Values Flags::Impl::read_variables() const {
    Values values;
    for (const Entry& entry : entries) {
        if (entry.info.variable.empty()) continue;
        const char* const text = std::getenv(entry.info.variable.c_str());
        if (text && *text) values[entry.info.name].push_back({text, entry.info.variable});
    }
    return values;
}

Flags::Impl::Values Flags::Impl::read_config(const std::filesystem::path& path,
                                             const std::string& tool) {
    const std::string own = tool.substr(0, tool.find(' '));
    Values values;
    for (const Setting& setting : read_settings(path)) {
        require(setting.section.empty() || setting.section == own || is_any_tool(setting.section),
                setting.where, ": no tool has the name '", setting.section, "'");
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
        std::vector<Given>& given = values[setting.key];
        const std::string where = concat(setting.where, ": ", setting.key);
        // The tool's own section wins over what stands above the sections.
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
        std::cout << help.name << " (hark) " << kVersion << "\n";
        return false;
    }
    // The strongest source last in the loop below is the first that has the flag.
    std::vector<Impl::Values> sources = {given};
    if (const auto config = given.find("config"); config != given.end()) {
        const std::string& path = config->second.front().text;
        require_usage(!path.empty(), "--config: expected a file, got an empty text");
        sources.push_back(impl.read_config(path, help.name));
    }
    sources.push_back(impl.read_variables());
    std::error_code failed;
    if (const auto path = user_config(); !path.empty() && std::filesystem::exists(path, failed))
        sources.push_back(impl.read_config(path, help.name));
    // A flag takes its values from the first source that has any.
    for (size_t source = sources.size(); source-- > 0;) {
        for (size_t stronger = 0; stronger < source; ++stronger)
            for (const auto& [name, values] : sources[stronger]) sources[source].erase(name);
        impl.take(sources[source], source == 0);
    }
    return true;
}

}  // namespace hark
