#include <iostream>

#include "hub/commands/commands.h"
#include "hub/installed.h"

namespace hark::models {
namespace {

struct RemoveOptions {
    std::vector<std::string> names;
    void flags(Flags& flags) {
        flags.positional("MODEL", names, "the name of a model that the user has installed");
    }
};

void run_remove(const RemoveOptions& options, Console& console) {
    const RemovedModel removed = remove_model(only_model(options.names));
    std::cout << removed.path.string() << "\n";
    for (const std::string& kind : removed.defaults)
        console.warning(concat("it was the default ", kind,
                               " model; choose another with hark model use MODEL"));
}

}  // namespace

int remove_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-model rm",
        .summary = "Removes a model from the user's folder, without a question.",
        .description =
            "A model elsewhere is left alone: an installed demonstration model, or a path.\n"
            "Of a link in the folder the link alone is removed.",
        .examples =
            "# frees 967 MB\n"
            "hark model rm small\n"
            "# a model in one file\n"
            "hark model rm ggml-base.bin\n"
            "# an incomplete download goes with the name of its model\n"
            "hark model rm large-v3"};
    return tool_main<RemoveOptions>(help, argc, argv, run_remove);
}

}  // namespace hark::models
