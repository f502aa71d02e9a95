#include "hub/model_handle.h"

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "core/models/models.h"
#include "formats/gguf.h"
#include "whisper/model/ggml_file.h"

namespace hark::models {
namespace {

namespace fs = std::filesystem;

// The type in a folder's config.json, or by a file's first bytes; empty if they do not say it.
std::string model_type(const fs::path& path) {
    std::error_code failed;
    if (!fs::is_directory(path, failed)) {
        const std::string begin = first_bytes(path, 4);
        if (begin == whisper::GgmlFile::kMagic || begin == "PK\x03\x04") return "whisper";
        return begin == kGgufMagic ? "gguf" : "";
    }
    const fs::path config = path / "config.json";
    if (!fs::exists(config, failed)) return "";
    const auto root = parse_json(read_file(config, size_t{1} << 20), config.string());
    if (!root.is_object() || !root.contains("model_type")) return "";
    return root["model_type"].is_string() ? root["model_type"].get<std::string>() : "";
}

}  // namespace

ModelHandle open_any_model(const fs::path& path) {
    const std::string type = model_type(path);
    const bool is_known = !type.empty();
    ModelHandle model;
    std::string not_whisper;
    if (!is_known || type == "whisper") try {
            model.whisper = whisper::open_model(path);
            return model;
        } catch (const Error& why) {
            if (is_known) throw;
            not_whisper = why.what();
        }
    try {
        model.gpt = gpt::open_model(path);  // names the types that it reads
        return model;
    } catch (const Error& why) {
        if (is_known || not_whisper == why.what()) throw;
        fail("not a Whisper model (", not_whisper, ") and not a language model (", why.what(), ")");
    }
}

void check_tokenizer(const ModelHandle& model) {
    if (model.whisper)
        model.whisper->tokenizer();
    else
        model.gpt->tokenizer();
}

fs::path find_any_model(const std::string& name) {
    const std::vector<fs::path> found = find_models(name);
    require(found.size() == 1, "'", name, "' is the name of two models; give ",
            found.front().filename().string(), " or ", found.back().filename().string());
    return found.front();
}

}  // namespace hark::models
