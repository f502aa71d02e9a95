#include <iostream>

#include "core/models/models.h"
#include "hub/commands/commands.h"
#include "hub/installed.h"
#include "hub/model_handle.h"

namespace hark::models {
namespace {

struct UseOptions {
    std::vector<std::string> names;
    void flags(Flags& flags) { flags.positional("MODEL", names, kModelHelp); }
};

void run_use(const UseOptions& options, Console&) {
    for (const std::filesystem::path& path : find_models(only_model(options.names))) {
        const ModelHandle model = open_any_model(path);
        choose_model(model.kind(), path);
        std::cout << model.kind() << ": " << std::filesystem::canonical(path).string() << "\n";
    }
}

}  // namespace

int use_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-model use",
        .summary = "Makes a model the default of its kind: tools take it without --model.",
        .description = "A name that a Whisper and a GPT model have sets both defaults.",
        .examples =
            "# whisper-transcribe takes whisper-small from now on\n"
            "hark model use small\n"
            "# a model of your own\n"
            "hark model use ./run\n"
            "# the demonstration models, one of each kind\n"
            "hark model use demo",
        .files =
            "~/.local/share/hark/models/whisper-default  link to Whisper's default\n"
            "~/.local/share/hark/models/gpt-default  link to GPT's default"};
    return tool_main<UseOptions>(help, argc, argv, run_use);
}

}  // namespace hark::models
