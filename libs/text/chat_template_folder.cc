// Chat templates of a Hugging Face folder (transformers 5.24, tokenization_utils_base.py).
#include <algorithm>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"
#include "text/chat_template.h"
#include "text/jinja/template.h"

namespace hark {
namespace {

using nlohmann::json;

// An empty object if there is no such file.
json read_object(const std::filesystem::path& path) {
    if (!std::filesystem::exists(path)) return json::object();
    json object = parse_json(read_file(path), path.string());
    require(object.is_object(), path.string(), ": not a JSON object");
    return object;
}

// A token is a string or {"content": ...}; null and lists are none.
void add_token_names(std::map<std::string, std::string>& tokens, const json& config) {
    for (const auto& [name, value] : config.items()) {
        if (!name.ends_with("_token")) continue;
        if (value.is_string())
            tokens[name] = value.get<std::string>();
        else if (value.is_object() && value.contains("content") && value["content"].is_string())
            tokens[name] = value["content"].get<std::string>();
    }
}

using Sources = std::vector<std::pair<std::string, std::string>>;  // name, template

// A template, or a list of {"name": ..., "template": ...}.
Sources sources_of(const json& config, const std::string& where) {
    Sources sources;
    if (!config.contains("chat_template") || config["chat_template"].is_null()) return sources;
    const json& value = config["chat_template"];
    if (value.is_string()) return {{"default", value.get<std::string>()}};
    require(value.is_array(), where, ": chat_template: expected a string or a list");
    for (const json& entry : value) {
        require(entry.is_object() && entry.contains("name") && entry["name"].is_string() &&
                    entry.contains("template") && entry["template"].is_string(),
                where, ": chat_template: expected a name and a template in each entry");
        sources.emplace_back(entry["name"].get<std::string>(),
                             entry["template"].get<std::string>());
    }
    return sources;
}

std::vector<std::filesystem::path> additional_templates(const std::filesystem::path& directory) {
    std::vector<std::filesystem::path> paths;
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory / "additional_chat_templates", none))
        if (entry.path().extension() == ".jinja") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    return paths;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::from_directory(const std::filesystem::path& directory) {
    ChatTemplate made;
    made.where_ = directory.string();
    const auto file = directory / "chat_template.jinja";
    if (std::filesystem::exists(file))
        made.add("default", read_file(file, jinja::kMaxTemplateBytes), file.string());
    for (const auto& path : additional_templates(directory))
        made.add(path.stem().string(), read_file(path, jinja::kMaxTemplateBytes), path.string());
    const json config = read_object(directory / "tokenizer_config.json");
    for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
        if (!made.templates_.empty()) break;
        const std::string where = (directory / name).string();
        for (const auto& [entry, source] : sources_of(read_object(where), where))
            made.add(entry, source, where + ": chat_template " + entry);
    }
    if (made.templates_.empty()) return std::nullopt;
    add_token_names(made.special_tokens_, read_object(directory / "special_tokens_map.json"));
    add_token_names(made.special_tokens_, config);
    if (config.contains("extra_special_tokens") && config["extra_special_tokens"].is_object())
        add_token_names(made.special_tokens_, config["extra_special_tokens"]);
    return made;
}

}  // namespace hark
