#include "models/any_model.h"

#include "core/error.h"
#include "core/files.h"
#include "core/gguf.h"
#include "core/json.h"
#include "core/models.h"
#include "whisper/ggml_file.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

// What a file's first bytes say it is, or a directory's config.json; empty where they say nothing.
std::string model_type(const fs::path& path) {
    std::error_code failed;
    if (!fs::is_directory(path, failed)) {
        const std::string begin = first_bytes(path, 4);
        if (begin == whisper::GgmlFile::kMagic || begin == "PK\x03\x04") return "whisper";
        return begin == kGgufMagic ? "gpt2" : "";
    }
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
    if (name.find('/') != std::string::npos) return find_model(name, "whisper");
    const fs::path whisper = find_named_model(name, "whisper"), gpt = find_named_model(name, "gpt");
    if (whisper.empty() && gpt.empty()) fail_unnamed(name, {"whisper", "gpt"});
    require_usage(whisper.empty() || gpt.empty() || fs::equivalent(whisper, gpt),
                  "there are whisper-", name, " and gpt-", name, ": expected one of these names");
    return whisper.empty() ? gpt : whisper;
}

}  // namespace hark::models
