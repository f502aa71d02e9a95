// The command line of every tool: flags that register themselves, one main, one place for exits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cli/help.h"
#include "core/error.h"

namespace hark {

// Refines the flag that Flags::add() has just registered.
class Flag {
  public:
    explicit Flag(FlagInfo& info) : info_(info) {}

    Flag& essential() { return info_.essential = true, *this; }  // --help shows it
    // Further sentences, for --help-all and the man page.
    Flag& details(const char* text) { return info_.details = text, *this; }
    // Its environment variable, where that is not HARK_ and the flag in capitals; "": none.
    Flag& variable(const char* name) { return info_.variable = name, *this; }
    // The variable is HARK_TOOL_FLAG (HARK_SERVE_PORT of hark-serve): for a flag that means
    // something else in another tool.
    Flag& own_variable() { return info_.own_variable = true, *this; }
    // The default that help shows, where the value has none yet.
    Flag& shows_default(std::string text) { return info_.shown_default = std::move(text), *this; }
    // The bounds that help shows; Flags::add() sets those of numbers.
    Flag& shows_range(std::string text) { return info_.range = std::move(text), *this; }
    Flag& completes(Completes what) { return info_.completes = what, *this; }
    // Values that a shell offers; others are taken too.
    Flag& suggests(std::vector<std::string> v) { return info_.suggests = std::move(v), *this; }

  private:
    FlagInfo& info_;
};

// Collects a tool's flags. An options struct registers each field once: name, default, help and
// check are in one line. Values come from the command line, else --config FILE, else environment
// variables, else the user's configuration (core/cli/settings.h). A value that breaks its check is
// a UsageError (exit 2) on the command line, and an Error elsewhere.
class Flags {
  public:
    Flags();
    ~Flags();
    Flags(const Flags&) = delete;

    // Flags registered from now on belong to this section of --help.
    void section(const char* title);

    // `name` is "model", or with a short form "model,m". `value` holds the default. If the first
    // word of `help` is in capitals, it names the argument: "HZ samples per second" shows as
    // `--sample-rate HZ   samples per second`. `help` has at most 70 characters.
    Flag add(const char* name, std::string& value, const char* help);
    // For the name of a file, a directory or a model: refuses an empty text, which means "none".
    Flag add_name(const char* name, std::string& value, const char* help);
    Flag add(const char* name, int64_t& value, const char* help, int64_t min, int64_t max);
    Flag add(const char* name, double& value, const char* help, double min, double max);
    // Stays unset if the flag is not given.
    Flag add(const char* name, std::optional<int64_t>& value, const char* help, int64_t min,
             int64_t max);
    // `none` unsets a value that has a default.
    Flag add(const char* name, std::optional<double>& value, const char* help, double min,
             double max);
    // A list given as one argument, separated by commas. `none` empties a list of numbers that has
    // a default.
    Flag add(const char* name, std::vector<double>& value, const char* help, double min,
             double max);
    Flag add(const char* name, std::vector<std::string>& value, const char* help);
    // One of the choices.
    Flag add(const char* name, std::string& value, const std::vector<std::string>& choices,
             const char* help);
    // --NAME turns it on, --no-NAME off; `value` holds the default.
    Flag add_switch(const char* name, bool& value, const char* help);
    // May be given several times, each with one value taken as it is.
    Flag add_repeated(const char* name, std::vector<std::string>& values, const char* help);
    // The arguments that are not flags; a tool without it takes none.
    void positional(const char* name, std::vector<std::string>& values, const char* help,
                    Completes completes = Completes::nothing);
    // For a tool that takes no arguments: the error if there are some. `arguments` and `options`,
    // all that was given, are words of a shell.
    using RejectArguments =
        std::function<std::string(const std::string& arguments, const std::string& options)>;
    void reject_arguments(RejectArguments message);

    // Names the source of each flag in `message` whose value did not come from the command line, as
    // "HARK_DEVICE" or "FILE:3: device", with commas; "" if there is none.
    std::string sources_in(const std::string& message) const;

    // For --version: what `text` returns is the devices that the tool can compute on.
    void devices(std::string (*text)());

    // Sets all values. Throws UsageError or Error; returns false if --help, --help-all or --version
    // was given and answered.
    bool parse(int argc, char** argv, const ToolHelp& help);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Returns `text` with control bytes and bytes that are not UTF-8 escaped, and the middle of a long
// text left out: for messages on a terminal.
std::string printable(std::string_view text);

// Returns `text` as one word of a shell's command line, quoted if it needs to be.
std::string shell_word(const std::string& text);

// What a running tool says on stderr. A run that reported an error ends with exit status 1.
class Console {
  public:
    explicit Console(std::string tool) : tool_(std::move(tool)) {}

    void error(const std::string& message);    // always shown; the run continues but has failed
    void warning(const std::string& message);  // not with --quiet
    // With --verbose: what a stage made, and its time.
    void stage(const std::string& name, const std::string& shape, double ms);
    // With --trace: the same of one of the many small steps within a stage.
    void trace(const std::string& name, const std::string& shape, double ms);
    // A line of a table that was asked for, as it is.
    void table_line(const std::string& line);
    // Text that was asked for, in pieces of whole code points.
    void text(std::string_view piece);
    bool failed() const { return failed_; }
    // Registers --quiet, --verbose and, for tools that have them, --trace, --profile, --stats,
    // --metrics, --progress and --color.
    void flags(Flags& flags, const ToolHelp& help);
    // Whether text written to `fd` is coloured: --color, and for `auto` a terminal without
    // NO_COLOR.
    bool colors(int fd) const;

    bool quiet = false, verbose = false, tracing = false;
    bool silent = false;  // says nothing: another process of the run says the same
    bool stats = false;   // --stats
    std::string profile, metrics;  // --profile and --metrics; empty: no file
    std::string progress = "auto", color = "auto";
    // Calls what writes a message; unset: messages are written as they are.
    std::function<void(const std::function<void()>& write)> around_message;

  private:
    void say(const std::string& message);
    void write_line(const std::string& line);

    std::string tool_;
    bool failed_ = false;
};

// Throws UsageError if stdin is a terminal. `expected` says what should come through the pipe;
// `pipe` is one to type, if given.
void require_piped_stdin(const std::string& expected, const std::string& pipe = "");
// Throws UsageError if stdout is a terminal.
void require_not_terminal(const std::string& produced);

namespace detail {
int tool_main(const ToolHelp& help, int argc, char** argv,
              const std::function<void(Flags&)>& register_flags,
              const std::function<void(Console&)>& run);
}

// Parses the command line, runs, and turns what was thrown into a message and an exit status.
// Options has `void flags(Flags&)`.
template <class Options>
int tool_main(const ToolHelp& help, int argc, char** argv, void (*run)(const Options&, Console&)) {
    Options options;
    return detail::tool_main(
        help, argc, argv, [&](Flags& flags) { options.flags(flags); },
        [&](Console& console) { run(options, console); });
}

// One command of a tool that is made of commands, each with flags of its own.
struct Command {
    const char* name;
    const char* summary;
    int (*main)(int argc, char** argv);  // argv[0] is its name
};

// Runs the command that the first word names, or answers help, --help, -h or --version there.
// Returns the exit status.
int commands_main(const ToolHelp& help, std::span<const Command> commands, int argc, char** argv);

}  // namespace hark
