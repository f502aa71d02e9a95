#include <algorithm>
#include <iostream>
#include <iterator>

#include "core/models/models.h"
#include "hub/commands/commands.h"
#include "hub/describe.h"
#include "hub/installed.h"
#include "hub/model_handle.h"

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

// The models that `given` names, each under its own name; a path is its own.
std::vector<InstalledModel> models_named(const std::string& given,
                                         const std::vector<InstalledModel>& installed) {
    require_usage(!given.empty(), "a model's name is empty");
    std::vector<InstalledModel> models;
    for (const fs::path& path : find_models(given)) {
        const auto known = std::find_if(installed.begin(), installed.end(),
                                        [&](auto& model) { return model.path == path; });
        models.push_back({known == installed.end() ? path.string() : known->name, path});
    }
    return models;
}

nlohmann::ordered_json described(const InstalledModel& installed) {
    const ModelHandle model = open_any_model(installed.path);
    nlohmann::ordered_json description = {{"name", installed.name},
                                          {"path", installed.path.lexically_normal().string()}};
    description.update(describe_model(model));
    describe_origin(model, installed.path, description);
    return description;
}

void run_info(const InfoOptions& options, Console& console) {
    const std::vector<InstalledModel> installed = installed_and_defaults();
    std::vector<InstalledModel> models;
    for (const std::string& given : options.names)
        for (InstalledModel& model : models_named(given, installed))
            models.push_back(std::move(model));
    if (options.names.empty())
        std::copy_if(installed.begin(), installed.end(), std::back_inserter(models),
                     [](const InstalledModel& model) { return model.certain; });
    bool first = true;
    for (const InstalledModel& model : models) {
        nlohmann::ordered_json description;
        try {
            description = described(model);
        } catch (const Error& why) {
            console.error(why.what());
            continue;
        }
        if (options.format == "json") {
            std::cout << json_text(description, 2) << "\n";
            continue;
        }
        std::cout << (first ? "" : "\n") << as_text(description);
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
