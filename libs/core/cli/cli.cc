#include "core/cli/cli.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/cli/suggest.h"
#include "core/cli/version.h"
#include "core/machine/program_path.h"
#include "core/profile/measured_run.h"

namespace hark {

namespace {

// Bounds how long libgomp's threads spin while they wait for one another: by default milliseconds,
// which on a busy machine keep the awaited thread from running. libgomp reads the bound when it is
// loaded, so the tool starts itself once more with it, unless the user has set one.
void bound_spinning() {
    if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY")) return;
    const std::string self = program_path().string();
    std::vector<std::string> words;  // the whole command line, which a subcommand does not see
    std::ifstream in("/proc/self/cmdline", std::ios::binary);
    for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (self.empty() || words.empty() || ::setenv("GOMP_SPINCOUNT", "2000", 1) != 0) return;
    ::execv(self.c_str(), argv.data());  // if it fails, the tool runs as it is
}

// Returns the number of bytes of the visible character that `text` begins with; 0 if it begins with
// a control character (which may move a terminal's cursor) or with a byte that is not UTF-8.
size_t character_length(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
    if (length > text.size()) return 0;
    for (size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    return lead == 0xc2 && byte(1) < 0xa0 ? 0 : length;  // U+0080 to U+009F are control characters
}

// "\\n", "\\x1b".
std::string escaped(char c) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (c == '\n') return "\\n";
    if (c == '\t') return "\\t";
    const unsigned char byte = static_cast<unsigned char>(c);
    return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

}  // namespace

std::string printable(std::string_view text) {
    constexpr size_t kMostBytes = 2000, kHead = 1300, kTail = 600;
    if (text.size() > kMostBytes)
        return concat(printable(text.substr(0, kHead)), " ... (", text.size() - kHead - kTail,
                      " bytes left out) ... ", printable(text.substr(text.size() - kTail)));
    std::string shown;
    for (size_t at = 0; at < text.size();) {
        const size_t length = character_length(text.substr(at));
        shown += length > 0 ? std::string(text.substr(at, length)) : escaped(text[at]);
        at += std::max<size_t>(length, 1);
    }
    return shown;
}

std::string shell_word(const std::string& text) {
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return c >= 0x80 || std::isalnum(c) ||
               std::string("_-./,:+@%=").find(c) != std::string::npos;
    });
    if (plain) return text;
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

void Console::write_line(const std::string& line) {
    if (silent) return;
    const auto write = [&] { std::fprintf(stderr, "%s\n", line.c_str()); };
    if (around_message)
        around_message(write);
    else
        write();
}

void Console::say(const std::string& message) {
    write_line(concat(tool_, ": ", printable(message)));
}

void Console::table_line(const std::string& line) { write_line(printable(line)); }

void Console::text(std::string_view piece) {
    if (silent) return;
    std::string shown;
    for (size_t at = 0; at < piece.size();) {
        const size_t end = std::min(piece.find_first_of("\n\t", at), piece.size());
        shown += printable(piece.substr(at, end - at));
        if (end < piece.size()) shown += piece[end];
        at = end + 1;
    }
    std::fputs(shown.c_str(), stderr);
}

void Console::error(const std::string& message) {
    failed_ = true;
    say(message);
}

void Console::warning(const std::string& message) {
    if (!quiet) say(message);
}

void Console::stage(const std::string& name, const std::string& shape, double ms) {
    if (!verbose && !tracing) return;
    char time[32];
    std::snprintf(time, sizeof time, "%.3f ms", ms);
    say(concat(name, " ", shape, " ", time));
}

void Console::trace(const std::string& name, const std::string& shape, double ms) {
    if (tracing) stage(name, shape, ms);
}

bool Console::colors(int fd) const {
    if (color != "auto") return color == "always";
    const char* const no_color = std::getenv("NO_COLOR");
    const char* const terminal = std::getenv("TERM");
    return (!no_color || !*no_color) && (!terminal || std::string_view(terminal) != "dumb") &&
           ::isatty(fd);
}

void require_piped_stdin(const std::string& expected, const std::string& pipe) {
    require_usage(!isatty(STDIN_FILENO), "stdin is a terminal, expected ", expected,
                  " through a pipe or from a file", pipe.empty() ? "" : "; type: " + pipe);
}

void require_not_terminal(const std::string& produced) {
    require_usage(!isatty(STDOUT_FILENO), "stdout is a terminal, and ", produced,
                  " is binary; pipe it to the next tool or send it to a file");
}

void Console::flags(Flags& flags, const ToolHelp& help) {
    flags.section(kGeneralSection);
    flags.add_switch("quiet,q", quiet, "print only errors on stderr").essential();
    flags.add_switch("verbose,v", verbose, "print on stderr each stage, its shape and its time")
        .essential();
    if (help.traces)
        flags.add_switch("trace", tracing, "--verbose, and a line for each decoder step");
    if (help.is_measured) {
        flags.add_name("profile", profile, "FILE where the time went, as a trace for Perfetto")
            .completes(Completes::file)
            .details(
                "Chrome's trace event format, an event per line. hark-trace merges the files of a "
                "pipe's tools, and sums them up.");
        flags.add_switch("stats", stats, "write tables of counts, times and memory to stderr");
        flags.add_name("metrics", metrics, "FILE counts and times, as Prometheus reads them")
            .completes(Completes::file)
            .details("Written when the run ends, for node_exporter's textfile collector.");
    }
    if (help.shows_progress)
        flags
            .add("progress", progress, {"auto", "always", "never", "json"},
                 "WHEN to show progress on stderr")
            .details("auto: on a terminal, if stdout is not a pipe; json: one object per line");
    if (help.uses_color)
        flags.add("color", color, {"auto", "always", "never"}, "WHEN to colour text")
            .details("auto: on a terminal, unless NO_COLOR is set");
}

int detail::tool_main(const ToolHelp& help, int argc, char** argv,
                      const std::function<void(Flags&)>& register_flags,
                      const std::function<void(Console&)>& run) {
    bound_spinning();
    // A reader that has gone ends the tool quietly, also if the parent had SIGPIPE ignored.
    std::signal(SIGPIPE, SIG_DFL);
    std::setvbuf(stderr, nullptr, _IOLBF, 1024);
    Console console(help.name);
    Flags flags;
    try {
        register_flags(flags);
        console.flags(flags, help);
        if (flags.parse(argc, argv, help)) {
            // They may come from different sources: a configuration file, a variable, a flag.
            if (console.quiet) console.verbose = console.tracing = false;
            MeasuredRun measured(help.name, console);
            run(console);
            measured.finish();
        }
        std::cout.flush();
        require(std::cout.good(), "cannot write to stdout");
    } catch (const UsageError& wrong) {
        // A default of the user's is no mistake of this command line.
        const std::string source = flags.sources_in(wrong.what());
        if (!source.empty()) {
            console.error(concat(source, ": ", wrong.what()));
            return 1;
        }
        console.error(concat(wrong.what(), "; try ", help.name, " --help"));
        return 2;
    } catch (const std::exception& failure) {
        console.error(failure_text(failure));
    }
    return console.failed() ? 1 : 0;
}

int commands_main(const ToolHelp& help, std::span<const Command> commands, int argc, char** argv) {
    std::string word = argc > 1 ? argv[1] : "";
    // `help COMMAND` is `COMMAND --help`.
    std::string flag = "--help";
    char* help_argv[] = {argc > 2 ? argv[2] : nullptr, flag.data(), nullptr};
    const bool wants_help = word == "help";
    if (wants_help) word = argc > 2 ? argv[2] : "--help";
    ToolDescription tool;
    tool.help = help;
    std::vector<std::string> names;
    for (const Command& command : commands) {
        if (word == command.name)
            return wants_help ? command.main(2, help_argv) : command.main(argc - 1, argv + 1);
        tool.commands.push_back({command.name, command.summary});
        names.push_back(command.name);
    }
    Console console(help.name);
    if (word == "--help" || word == "-h" || word == "--help-all") {
        std::cout << help_text(tool, word == "--help-all");
    } else if (word == "--help-as" && argc == 3) {
        try {
            std::cout << help_as(tool, argv[2]);
        } catch (const UsageError& wrong) {
            console.error(concat(wrong.what(), "; try ", help.name, " --help"));
            return 2;
        }
    } else if (word == "--version") {
        std::cout << version_text(help.name);
    } else {
        std::string list;
        for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
        const std::string wrong =
            argc > 1 ? concat("unknown command '", word, "'") : "no command given";
        console.error(concat(wrong, did_you_mean(word, names), "; expected one of ", list, "; try ",
                             help.name, " --help"));
        return 2;
    }
    std::cout.flush();
    if (std::cout.good()) return 0;
    console.error("cannot write to stdout");
    return 1;
}

}  // namespace hark
