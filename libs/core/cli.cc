#include "core/cli.h"

#include <unistd.h>

#include <boost/program_options.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>

#include "core/version.h"

namespace hark {

namespace po = boost::program_options;

namespace {

// libgomp's threads wait for one another spinning, by default for milliseconds: on a busy machine
// that keeps the awaited thread from running. The bound is read when libgomp is loaded, so the tool
// is started once more with it, unless the user has chosen.
void bound_spinning() {
    if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
    std::error_code failed;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
    std::vector<std::string> words;  // the whole command line, which a subcommand does not see
    std::ifstream in("/proc/self/cmdline", std::ios::binary);
    for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (failed || words.empty() || ::setenv("GOMP_SPINCOUNT", "2000", 1) != 0) return;
    ::execv(self.c_str(), argv.data());  // where it fails, the tool goes on as it is
}

// The name under which arguments without a flag are kept; no flag of its own.
constexpr const char* kPositional = "positional";

// "HZ samples a second" -> {"HZ", "samples a second"}; without a leading word in capitals,
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

double parse_number(const std::string& flag, const std::string& text, double min, double max) {
    size_t used = 0;
    double value = 0;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    require_usage(used == text.size() && used > 0 && value >= min && value <= max, "--", flag,
                  ": expected a number from ", number_text(min), " to ", number_text(max),
                  ", found '", text, "'");
    return value;
}

void print_version(const std::string& tool) { std::cout << tool << " (hark) " << kVersion << "\n"; }

std::vector<std::string> split_commas(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
    return parts;
}

}  // namespace

struct Flags::Impl {
    po::options_description options{"Options"};
    po::options_description all;
    po::positional_options_description positions;
    std::string positional_name, positional_help;

    // Registers `name` as a string whose text `set` turns into the value.
    void add(const char* name, const std::string& shown_default, const char* help,
             std::function<void(const std::string&)> set) {
        auto [metavar, text] = split_metavar(help);
        if (!shown_default.empty()) text += " [" + shown_default + "]";
        auto* value = po::value<std::string>();
        value->value_name(metavar);
        value->notifier(std::move(set));
        options.add_options()(name, value, text.c_str());
    }
};

Flags::Flags() : impl_(std::make_unique<Impl>()) {}
Flags::~Flags() = default;

void Flags::add(const char* name, std::string& value, const char* help) {
    impl_->add(name, value, help, [&value](const std::string& text) { value = text; });
}

void Flags::add_name(const char* name, std::string& value, const char* help) {
    impl_->add(name, value, help, [=, &value](const std::string& text) {
        require_usage(!text.empty(), "--", name, ": expected a name, found an empty text");
        value = text;
    });
}

void Flags::add(const char* name, int64_t& value, const char* help, int64_t min, int64_t max) {
    impl_->add(name, std::to_string(value), help, [=, &value](const std::string& text) {
        size_t used = 0;
        try {
            value = std::stoll(text, &used);
        } catch (const std::exception&) {
            used = 0;
        }
        require_usage(used == text.size() && used > 0 && value >= min && value <= max, "--", name,
                      ": expected a whole number from ", min, " to ", max, ", found '", text, "'");
    });
}

void Flags::add(const char* name, double& value, const char* help, double min, double max) {
    impl_->add(name, number_text(value), help, [=, &value](const std::string& text) {
        value = parse_number(name, text, min, max);
    });
}

void Flags::add(const char* name, std::optional<double>& value, const char* help, double min,
                double max) {
    impl_->add(name, value ? number_text(*value) : "", help, [=, &value](const std::string& text) {
        value = parse_number(name, text, min, max);
    });
}

void Flags::add(const char* name, std::vector<double>& value, const char* help, double min,
                double max) {
    std::string shown;
    for (double x : value) shown += (shown.empty() ? "" : ",") + number_text(x);
    impl_->add(name, shown, help, [=, &value](const std::string& text) {
        value.clear();
        for (const std::string& part : split_commas(text))
            value.push_back(parse_number(name, part, min, max));
        require_usage(!value.empty(), "--", name, ": expected at least one number");
    });
}

void Flags::add(const char* name, std::vector<std::string>& value, const char* help) {
    std::string shown;
    for (const std::string& x : value) shown += (shown.empty() ? "" : ",") + x;
    impl_->add(name, shown, help, [&value, name = std::string(name)](const std::string& text) {
        require_usage(!text.empty(), "--", name, ": expected at least one, found none");
        value = split_commas(text);
    });
}

void Flags::add(const char* name, std::string& value, const std::vector<std::string>& choices,
                const char* help) {
    std::string list;
    for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
    const std::string text = concat(help, ": ", list);
    impl_->add(name, value, text.c_str(), [=, &value](const std::string& given) {
        bool known = false;
        for (const std::string& choice : choices) known = known || choice == given;
        require_usage(known, "--", name, ": expected one of ", list, ", found '", given, "'");
        value = given;
    });
}

void Flags::add_switch(const char* name, bool& value, const char* help) {
    impl_->options.add_options()(name, po::bool_switch(&value), help);
}

void Flags::add_repeated(const char* name, std::vector<std::string>& values, const char* help) {
    auto [metavar, text] = split_metavar(help);
    auto* value = po::value<std::vector<std::string>>(&values);
    value->value_name(metavar);
    impl_->options.add_options()(name, value, text.c_str());
}

void Flags::positional(const char* name, std::vector<std::string>& values, const char* help) {
    impl_->positional_name = name;
    impl_->positional_help = help;
    impl_->all.add_options()(kPositional, po::value<std::vector<std::string>>(&values), help);
    impl_->positions.add(kPositional, -1);
}

bool Flags::parse(int argc, char** argv, const std::string& tool, const std::string& summary) {
    impl_->options.add_options()("config", po::value<std::string>()->value_name("FILE"),
                                 "read flags from FILE, a line `name = value` each; the command "
                                 "line wins");
    impl_->options.add_options()("help", "print this and exit; so does -h");
    impl_->options.add_options()("version", "print the version and exit");
    impl_->all.add(impl_->options);
    impl_->all.add_options()(",h", "");  // not shown: --help names it
    try {
        po::command_line_parser parser(argc, argv);
        // No abbreviations: a misspelt or shortened flag is an error, never a guess.
        parser.options(impl_->all)
            .positional(impl_->positions)
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
        po::variables_map values;
        const po::parsed_options parsed = parser.run();
        for (const auto& option : parsed.options)
            require_usage(option.string_key != kPositional || option.position_key >= 0,
                          "unrecognised option '--", kPositional, "'");
        po::store(parsed, values);
        if (values.count("help") || values.count("-h")) {
            std::cout << "Usage: " << tool << " [OPTION]..."
                      << (impl_->positional_name.empty() ? "" : " " + impl_->positional_name)
                      << "\n"
                      << summary << "\n";
            if (!impl_->positional_name.empty())
                std::cout << "\n"
                          << impl_->positional_name << ": " << impl_->positional_help << "\n";
            std::cout << "\n" << impl_->options;
            return false;
        }
        if (values.count("version")) {
            print_version(tool);
            return false;
        }
        if (values.count("config")) {
            const std::string path = values["config"].as<std::string>();
            require_usage(!path.empty(), "--config: expected a file, found ''");
            std::ifstream file(path);
            require(file.good() && !std::filesystem::is_directory(path), path,
                    ": cannot read this configuration file");
            po::store(po::parse_config_file(file, impl_->options), values);
        }
        po::notify(values);
    } catch (const po::too_many_positional_options_error&) {
        throw UsageError("expected flags only: " + tool + " reads stdin and takes no files");
    } catch (const po::error& wrong) {
        throw UsageError(wrong.what());
    }
    return true;
}

void Console::error(const std::string& message) {
    failed_ = true;
    std::fprintf(stderr, "%s: %s\n", tool_.c_str(), message.c_str());
}

void Console::warning(const std::string& message) {
    if (!quiet) std::fprintf(stderr, "%s: %s\n", tool_.c_str(), message.c_str());
}

void Console::stage(const std::string& name, const std::string& shape, double ms) {
    if (verbose)
        std::fprintf(stderr, "%s: %s %s %.3f ms\n", tool_.c_str(), name.c_str(), shape.c_str(), ms);
}

void require_piped_stdin(const std::string& expected) {
    require_usage(!isatty(STDIN_FILENO), "stdin is a terminal: expected ", expected,
                  " through a pipe or from a file");
}

void require_not_terminal(const std::string& produced) {
    require_usage(!isatty(STDOUT_FILENO), "stdout is a terminal: ", produced,
                  " is binary; pipe it on or send it to a file");
}

int detail::tool_main(const char* name, const char* summary, int argc, char** argv,
                      const std::function<void(Flags&)>& register_flags,
                      const std::function<void(Console&)>& run) {
    bound_spinning();
    // A reader that has gone ends the tool quietly, also where the parent had SIGPIPE ignored.
    std::signal(SIGPIPE, SIG_DFL);
    std::setvbuf(stderr, nullptr, _IOLBF, 1024);
    Console console(name);
    try {
        Flags flags;
        register_flags(flags);
        flags.add_switch("quiet", console.quiet, "say nothing on stderr but errors");
        flags.add_switch("verbose", console.verbose,
                         "print on stderr what each stage made and in what time: `stage shape ms`");
        if (flags.parse(argc, argv, name, summary)) {
            require_usage(!console.quiet || !console.verbose,
                          "--quiet, --verbose: expected one of them at most");
            run(console);
        }
        std::cout.flush();
        require(std::cout.good(), "cannot write to stdout");
    } catch (const UsageError& wrong) {
        std::fprintf(stderr, "%s: %s; try %s --help\n", name, wrong.what(), name);
        return 2;
    } catch (const std::bad_alloc&) {
        console.error("out of memory");
    } catch (const std::exception& failure) {
        console.error(failure.what());
    }
    return console.failed() ? 1 : 0;
}

int commands_main(const char* tool, const char* summary, std::span<const Command> commands,
                  int argc, char** argv) {
    const std::string word = argc > 1 ? argv[1] : "";
    std::string known;
    for (const Command& command : commands) {
        if (word == command.name) return command.main(argc - 1, argv + 1);
        known += concat(known.empty() ? "" : ", ", command.name);
    }
    if (word == "--help" || word == "-h") {
        std::cout << "Usage: " << tool << " COMMAND [OPTION]...\n" << summary << "\n";
    } else if (word == "--version") {
        print_version(tool);
    } else {
        std::fprintf(stderr, "%s: expected a command first, one of %s, found %s; try %s --help\n",
                     tool, known.c_str(), argc > 1 ? concat("'", word, "'").c_str() : "none", tool);
        return 2;
    }
    std::cout.flush();
    if (std::cout.good()) return 0;
    std::fprintf(stderr, "%s: cannot write to stdout\n", tool);
    return 1;
}

}  // namespace hark
