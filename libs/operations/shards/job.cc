#include "operations/shards/job.h"

#include <algorithm>

#include "core/cli/version.h"
#include "core/error.h"
#include "core/models/models.h"
#include "hub/digest.h"

namespace hark::shards {

namespace fs = std::filesystem;

std::string model_sha256(const fs::path& model) {
    if (!fs::is_directory(model)) return models::sha256_of(model);
    std::vector<std::string> names;
    for (const auto& found : fs::recursive_directory_iterator(model))
        if (found.is_regular_file())
            names.push_back(found.path().lexically_relative(model).string());
    std::sort(names.begin(), names.end());
    std::string list;
    for (const std::string& name : names)
        list += concat(models::sha256_of(model / name), "  ", name, "\n");
    return models::sha256_of_text(list);
}

nlohmann::ordered_json describe_job(const fs::path& plan, const std::string& model,
                                    const std::vector<std::string>& options) {
    const fs::path path = find_model(model, "whisper");
    std::string all;
    for (const std::string& option : options) all += option + "\n";
    return {{"plan_sha256", models::sha256_of(plan / "shards.tsv")},
            {"model", model.empty() ? path.filename().string() : model},
            {"model_sha256", model_sha256(path)},
            {"options", options},
            {"options_sha256", models::sha256_of_text(all)},
            {"version", kVersion}};
}

}  // namespace hark::shards
