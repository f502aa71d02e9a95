// What a tool says about itself, and the texts made from it.
#pragma once

#include <string>
#include <vector>

namespace hark {

// What a shell offers to complete a flag's value with. Choices are offered without it.
enum class Completes { nothing, file, directory, model, published_model };

// One flag, as help texts, man pages and completions show it.
struct FlagInfo {
    std::string name;           // without the dashes
    char letter = 0;            // of the short form; 0: it has none
    std::string metavar;        // of its value: "FILE"; empty for a switch
    std::string shown_default;  // empty: not shown
    std::string help;           // one line
    std::string range;          // of a number: "0 to 1"
    std::string details;        // further sentences, for --help-all and the man page
    std::string variable;       // environment variable; empty: it has none
    std::string section;
    std::vector<std::string> choices;   // all values that it takes, if they are few
    std::vector<std::string> suggests;  // values that a shell offers, without --help showing them
    Completes completes = Completes::nothing;
    bool is_switch = false;     // takes no value; --no-NAME turns it off
    bool is_on = false;         // of a switch: its default
    bool is_repeated = false;   // may be given several times
    bool own_variable = false;  // its variable bears the tool's name
    bool essential = false;     // --help shows it
};

// One command of a tool that is made of commands.
struct CommandInfo {
    std::string name, summary;
};

// What the author of a tool writes about it.
struct ToolHelp {
    const char* name = "";         // "mel", or "hark-model get"
    const char* summary = "";      // one sentence
    const char* description = "";  // paragraphs for --help-all and the man page
    const char* examples = "";     // shell lines, each after a line "# what it does"
    const char* files = "";        // lines "PATH  what it is", for the man page
    bool shows_progress = false;   // takes --progress
    bool uses_color = false;       // takes --color
    bool traces = false;           // takes --trace
    bool is_measured = false;      // takes --profile, --stats and --metrics
};

// All that texts about a tool are made from.
struct ToolDescription {
    ToolHelp help;
    std::string positional, positional_help;  // "FILE...", "files to read"; empty: it takes none
    std::vector<FlagInfo> flags;              // in the order of the sections
    std::vector<CommandInfo> commands;        // of a tool that is made of commands
    Completes positional_completes = Completes::nothing;  // if its name does not say it
    std::vector<std::string> passes_to;                   // tools whose options it takes too
};

// The section of the flags that all tools have.
inline constexpr const char* kGeneralSection = "General";

// "-m, --model MODEL", "--[no-]timestamps".
std::string flag_usage(const FlagInfo& flag);
// Returns --help's text, or with `all` that of --help-all, in lines of at most 79 columns.
std::string help_text(const ToolDescription& tool, bool all);
// Returns `text` in a form for another program. `names`: each flag's name, a line each. Throws
// UsageError for an unknown form.
std::string help_as(const ToolDescription& tool, const std::string& form);

// Returns `text` in lines of at most `columns`, each after the first indented by `indent` spaces.
std::string wrapped(const std::string& text, size_t indent, size_t columns = 79);

}  // namespace hark
