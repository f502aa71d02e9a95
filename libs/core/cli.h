// The command line of every tool: flags that register themselves, one main, one place for exits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace hark {

// Collects a tool's flags. An options struct registers each field once: name, default, help and
// check stand in one line. A value that breaks its check is a UsageError (exit 2).
class Flags {
  public:
    Flags();
    ~Flags();
    Flags(const Flags&) = delete;

    // `value` holds the default. Where the first word of `help` is in capitals it names the
    // argument: "HZ samples a second" shows as `--rate HZ   samples a second`.
    void add(const char* name, std::string& value, const char* help);
    // What names a file, a directory or a model: no empty text, which stands for none given.
    void add_name(const char* name, std::string& value, const char* help);
    void add(const char* name, int64_t& value, const char* help, int64_t min, int64_t max);
    void add(const char* name, double& value, const char* help, double min, double max);
    void add(const char* name, std::optional<double>& value, const char* help, double min,
             double max);
    // A list given as one argument, separated by commas.
    void add(const char* name, std::vector<double>& value, const char* help, double min,
             double max);
    void add(const char* name, std::vector<std::string>& value, const char* help);
    // One of the choices.
    void add(const char* name, std::string& value, const std::vector<std::string>& choices,
             const char* help);
    // Off unless given.
    void add_switch(const char* name, bool& value, const char* help);
    // May be given several times, each with one value taken as it is.
    void add_repeated(const char* name, std::vector<std::string>& values, const char* help);
    // The arguments that are not flags; a tool without it takes none.
    void positional(const char* name, std::vector<std::string>& values, const char* help);

    // Throws UsageError; returns false where --help, -h or --version was given and answered.
    bool parse(int argc, char** argv, const std::string& tool, const std::string& summary);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// What a running tool says on stderr. A run that reported an error ends with exit status 1.
class Console {
  public:
    explicit Console(std::string tool) : tool_(std::move(tool)) {}

    void error(const std::string& message);    // always shown; the run goes on but has failed
    void warning(const std::string& message);  // unless --quiet
    void stage(const std::string& name, const std::string& shape, double ms);  // with --verbose
    bool failed() const { return failed_; }

    bool quiet = false;
    bool verbose = false;

  private:
    std::string tool_;
    bool failed_ = false;
};

// Throws UsageError where stdin is a terminal: `expected` says what should come through the pipe.
void require_piped_stdin(const std::string& expected);
// Throws UsageError where stdout is a terminal.
void require_not_terminal(const std::string& produced);

namespace detail {
int tool_main(const char* name, const char* summary, int argc, char** argv,
              const std::function<void(Flags&)>& register_flags,
              const std::function<void(Console&)>& run);
}

// Parses the command line, runs, and turns what was thrown into a message and an exit status.
// Options has `void flags(Flags&)`.
template <class Options>
int tool_main(const char* name, const char* summary, int argc, char** argv,
              void (*run)(const Options&, Console&)) {
    Options options;
    return detail::tool_main(
        name, summary, argc, argv, [&](Flags& flags) { options.flags(flags); },
        [&](Console& console) { run(options, console); });
}

// One command of a tool that is made of commands, each with flags of its own.
struct Command {
    const char* name;
    int (*main)(int argc, char** argv);  // argv[0] is its name
};

// Runs the command that the first word names, or answers --help, -h or --version there. Returns the
// exit status.
int commands_main(const char* tool, const char* summary, std::span<const Command> commands,
                  int argc, char** argv);

}  // namespace hark
