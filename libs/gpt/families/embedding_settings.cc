#include "gpt/families/embedding_settings.h"

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"

namespace hark::gpt {
namespace {

using nlohmann::json;

constexpr const char* kModules = "modules.json";
constexpr const char* kPrompts = "config_sentence_transformers.json";
constexpr const char* kLongest = "sentence_bert_config.json";

// The object or list in a file; null if there is no such file.
json read(const std::filesystem::path& path, json::value_t type) {
    if (!std::filesystem::exists(path)) return nullptr;
    json root = parse_json(read_file(path, size_t{1} << 20), path.string());
    require(root.type() == type, path.string(), ": expected a JSON ", json(type).type_name(),
            ", found ", json_kind(root));
    return root;
}

std::string text_field(const json& object, const char* key, const std::string& where) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    require(object.is_object() && found != object.end() && found->is_string(), where,
            ": expected a text named ", key);
    return found->get<std::string>();
}

// The last word of "sentence_transformers.models.Pooling".
std::string kind_of(const std::string& type) {
    const size_t dot = type.rfind('.');
    return dot == type.npos ? type : type.substr(dot + 1);
}

struct PoolingName {
    const char *name, *flag;  // of newer files, and the key that is true in older ones
    Pooling pooling;
};
constexpr PoolingName kPoolings[] = {
    {"lasttoken", "pooling_mode_lasttoken", Pooling::last_token},
    {"cls", "pooling_mode_cls_token", Pooling::first_token},
    {"mean", "pooling_mode_mean_tokens", Pooling::mean},
};
// By GGUF's type, from 1 on.
constexpr Pooling kByType[] = {Pooling::mean, Pooling::first_token, Pooling::last_token};

Pooling read_pooling(const std::filesystem::path& path) {
    const json root = read(path, json::value_t::object);
    require(root.is_object(), path.string(), ": cannot read the model's pooling: no such file");
    std::vector<std::string> found;
    for (const auto& [key, value] : root.items())
        if (key.starts_with("pooling_mode_") && value.is_boolean() && value.get<bool>())
            found.push_back(key);
    if (root.contains("pooling_mode")) found = {text_field(root, "pooling_mode", path.string())};
    const auto include = root.find("include_prompt");
    require(include == root.end() || *include != false, path.string(),
            ": include_prompt: expected true, found false, which is not supported");
    for (const PoolingName& name : kPoolings)
        if (found.size() == 1 && (found[0] == name.name || found[0] == name.flag))
            return name.pooling;
    std::string all;
    for (const std::string& name : found) all += (all.empty() ? "" : ", ") + name;
    fail(path.string(), ": expected the pooling lasttoken, cls or mean, found ",
         all.empty() ? "none" : all);
}

// The configurations of poolings that modules.json names: "1_Pooling/config.json".
std::vector<std::string> pooling_files(const std::filesystem::path& directory) {
    const std::filesystem::path path = directory / kModules;
    const json modules = read(path, json::value_t::array);
    std::vector<std::string> files;
    if (modules.is_null()) return files;
    for (const json& module : modules) {
        const std::string kind = kind_of(text_field(module, "type", path.string()));
        if (kind == "Pooling") {
            const std::string folder = text_field(module, "path", path.string());
            require(!folder.empty() && folder.front() != '.' && folder.find('/') == folder.npos,
                    path.string(), ": expected a folder's name as path of Pooling, found '", folder,
                    "'");
            files.push_back(folder + "/config.json");
        } else {
            require(kind == "Transformer" || kind == "Normalize", path.string(),
                    ": expected the modules Transformer, Pooling and Normalize, found ", kind);
        }
    }
    return files;
}

void read_prompts(const std::filesystem::path& directory, EmbeddingSettings& settings) {
    const std::filesystem::path path = directory / kPrompts;
    const json root = read(path, json::value_t::object);
    if (root.is_null()) return;
    if (root.contains("prompts") && root["prompts"].is_object())
        for (const auto& [name, prompt] : root["prompts"].items())
            if (prompt.is_string()) settings.prompts[name] = prompt.get<std::string>();
    const auto found = root.find("default_prompt_name");
    if (found == root.end() || found->is_null()) return;
    settings.default_prompt = text_field(root, "default_prompt_name", path.string());
    require(settings.prompts.contains(settings.default_prompt), path.string(),
            ": default_prompt_name: expected one of prompts, found '", settings.default_prompt,
            "'");
}

}  // namespace

EmbeddingSettings read_embedding_settings(const std::filesystem::path& directory) {
    EmbeddingSettings settings;
    for (const std::string& file : pooling_files(directory))
        settings.pooling = read_pooling(directory / file);
    read_prompts(directory, settings);
    const std::filesystem::path path = directory / kLongest;
    const json root = read(path, json::value_t::object);
    if (root.is_null() || !root.contains("max_seq_length") || root["max_seq_length"].is_null())
        return settings;
    const json& longest = root["max_seq_length"];
    require(longest.is_number_integer() && longest.get<int64_t>() > 0, path.string(),
            ": max_seq_length: expected a number from 1 on, found ", longest.dump());
    settings.longest = longest.get<int64_t>();
    return settings;
}

std::vector<std::string> embedding_files(const std::filesystem::path& directory) {
    std::vector<std::string> files = pooling_files(directory);
    for (const char* name : {kModules, kPrompts, kLongest})
        if (std::filesystem::exists(directory / name)) files.emplace_back(name);
    return files;
}

void write_embedding_files(const std::filesystem::path& directory, Pooling pooling,
                           int64_t channels) {
    nlohmann::ordered_json modules = nlohmann::ordered_json::array(), config;
    for (const char* kind : {"Transformer", "Pooling", "Normalize"})
        modules.push_back({{"idx", modules.size()},
                           {"name", std::to_string(modules.size())},
                           {"path", modules.empty() ? "" : concat(modules.size(), "_", kind)},
                           {"type", concat("sentence_transformers.models.", kind)}});
    config["word_embedding_dimension"] = channels;
    for (const PoolingName& name : kPoolings) config[name.flag] = name.pooling == pooling;
    const std::filesystem::path path = directory / "1_Pooling";
    std::filesystem::create_directory(path);
    write_file(path / "config.json", config.dump(2) + "\n");
    write_file(directory / kModules, modules.dump(2) + "\n");
}

int64_t gguf_pooling_type(Pooling pooling) {
    return std::find(std::begin(kByType), std::end(kByType), pooling) - std::begin(kByType) + 1;
}

EmbeddingSettings embedding_settings_of(const GgufFile& file) {
    EmbeddingSettings settings;
    const std::string key = concat(file.text("general.architecture"), ".pooling_type");
    if (!file.has(key)) return settings;
    const int64_t type = file.integer(key, 0, 4);
    if (type == 0) return settings;  // none
    require(type <= 3, file.name(), ": ", key, ": expected 0 to 3, found ", type,
            ", the rank of a pair, which is no vector");
    settings.pooling = kByType[type - 1];
    return settings;
}

}  // namespace hark::gpt
