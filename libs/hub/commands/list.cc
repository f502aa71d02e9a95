#include <iostream>

#include "hub/commands/commands.h"
#include "hub/describe.h"
#include "hub/installed.h"

namespace hark::models {
namespace {

struct ListOptions {
    std::string format = "text";
    void flags(Flags& flags) {
        flags.add("format,f", format, {"text", "json", "names"}, "FORMAT form of the list")
            .own_variable()
            .essential();
        flags.reject_arguments([](const std::string& arguments, const std::string&) {
            return concat("list takes no arguments (got ", arguments, ")");
        });
    }
};

void run_list(const ListOptions& options, Console& console) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    std::vector<std::vector<std::string>> rows;
    for (const InstalledModel& installed : installed_and_defaults()) {
        if (options.format == "names") {
            if (installed.certain) std::cout << installed.name << "\n";
            continue;
        }
        try {
            all.push_back(describe_installed(installed));
        } catch (const std::exception& why) {
            if (installed.certain) console.error(concat(installed.name, ": ", failure_text(why)));
        }
    }
    if (options.format == "text") std::cout << table_of(all);
    if (options.format == "json") std::cout << json_text(all, 2) << "\n";
}

}  // namespace

int list_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-model list",
        .summary = "Lists the installed models; * marks the default of its kind.",
        .description =
            "The user's own models are in $XDG_DATA_HOME/hark/models, else in\n"
            "~/.local/share/hark/models. A name hides the same name further down the\n"
            "list. Of a model that cannot be opened the reason is on stderr.",
        .examples =
            "# all installed models, as a table\n"
            "hark model list\n"
            "# the paths of the defaults\n"
            "hark model list --format json | jq -r '.[] | select(.default) | .path'\n"
            "# the names alone\n"
            "hark model list --format names"};
    return tool_main<ListOptions>(help, argc, argv, run_list);
}

}  // namespace hark::models
