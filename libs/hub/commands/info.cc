#include <iostream>

#include "core/models.h"
#include "hub/any_model.h"
#include "hub/commands/commands.h"
#include "hub/describe.h"
#include "hub/installed.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

struct InfoOptions {
    std::vector<std::string> names;
    std::string format = "text";
    void flags(Flags& flags) {
        flags.positional("[MODEL...]", names, kModelHelp);
        flags.add("format,f", format, {"text", "json"}, "FORMAT form of the description")
            .own_variable()
            .essential();
    }
};

// Of all installed models those that are certainly one.
std::vector<fs::path> all_models() {
    std::vector<fs::path> paths;
    for (const InstalledModel& model : installed_and_defaults())
        if (model.certain) paths.push_back(model.path);
    return paths;
}

void run_info(const InfoOptions& options, Console& console) {
    std::vector<fs::path> paths;
    for (const std::string& name : options.names) {
        require_usage(!name.empty(), "a model's name is empty");
        const std::vector<fs::path> found = find_models(name);
        paths.insert(paths.end(), found.begin(), found.end());
    }
    if (options.names.empty()) paths = all_models();
    bool first = true;
    for (const fs::path& path : paths) {
        nlohmann::ordered_json description;
        try {
            const AnyModel model = open_any_model(path);
            description = describe_model(model);
            describe_origin(model, path, description);
        } catch (const Error& why) {
            console.error(why.what());
            continue;
        }
        if (options.format == "json") {
            std::cout << description.dump(2, ' ', false, kReplace) << "\n";
            continue;
        }
        if (!first) std::cout << "\n";
        if (paths.size() > 1) std::cout << path.string() << "\n";
        std::cout << as_text(description);
        first = false;
    }
}

}  // namespace

int info_command(int argc, char** argv) {
    const ToolHelp help = {
        .name = "hark-model info",
        .summary =
            "Shows a model's format, shape, parameters, types and memory; without MODEL of all.",
        .description =
            "The memory is that of the weights at each --dtype of the tools. Of a language\n"
            "model the memory of keys and values at a context, the chat template and the\n"
            "tokens that end a text are shown; of Whisper the languages and the heads for\n"
            "word times; of a downloaded model its repository, commit and licence.",
        .examples =
            "# how much memory the weights take\n"
            "hark model info small\n"
            "# all installed models\n"
            "hark model info\n"
            "# the number of parameters\n"
            "hark model info ./run --format json | jq .parameters"};
    return tool_main<InfoOptions>(help, argc, argv, run_info);
}

}  // namespace hark::models
