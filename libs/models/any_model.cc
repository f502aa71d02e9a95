#include "models/any_model.h"

#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/models.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

// What a directory's config.json says it is; empty where it says nothing.
std::string model_type(const fs::path& path) {
    std::error_code failed;
    const fs::path config = path / "config.json";
    if (!fs::exists(config, failed)) return "";
    const auto root = parse_json(read_file(config, size_t{1} << 20), config.string());
    if (!root.is_object() || !root.contains("model_type")) return "";
    return root["model_type"].is_string() ? root["model_type"].get<std::string>() : "";
}

}  // namespace

AnyModel open_any_model(const fs::path& path) {
    const std::string type = model_type(path);
    require(type.empty() || type == "whisper" || type == "gpt2", path.string(),
            ": expected a model of type whisper or gpt2, found ", type);
    AnyModel model;
    std::string not_whisper;
    if (type != "gpt2") try {
            model.whisper = whisper::open_model(path);
            return model;
        } catch (const Error& why) {
            if (type == "whisper") throw;
            not_whisper = why.what();
        }
    try {
        model.gpt = gpt::open_model(path);
        return model;
    } catch (const Error& why) {
        if (type == "gpt2" || not_whisper == why.what()) throw;
        fail("no Whisper model: ", not_whisper, "; and no GPT-2: ", why.what());
    }
}

fs::path find_any_model(const std::string& name) {
    require_usage(!name.empty(), "expected a model's name or path, found an empty word");
    std::vector<fs::path> found;
    std::string missing;
    for (const char* kind : {"whisper", "gpt"}) {
        try {
            const fs::path path = find_model(name, kind);
            if (found.empty() || !fs::equivalent(found[0], path)) found.push_back(path);
        } catch (const Error& why) {
            missing = why.what();
        }
    }
    require(!found.empty(), missing);
    require_usage(found.size() == 1, "there are whisper-", name, " and gpt-", name,
                  ": expected one of these names");
    return found[0];
}

}  // namespace hark::models
