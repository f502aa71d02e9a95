#include "gpt/families/model_folder.h"

#include <unistd.h>

#include "core/error.h"
#include "core/files/files.h"
#include "core/json/json.h"

namespace hark::gpt {
namespace {

namespace fs = std::filesystem;

// Copies the tokenizer files that exist in `from`.
void copy_tokenizer(const fs::path& from, const fs::path& to) {
    for (const char* name : kTokenizerFiles)
        if (fs::exists(from / name)) write_file(to / name, read_file(from / name));
}

constexpr const char* kGenerationConfig = "generation_config.json";

void copy_generation_config(const fs::path& from, const fs::path& to) {
    if (fs::exists(from / kGenerationConfig))
        write_file(to / kGenerationConfig, read_file(from / kGenerationConfig));
}

// The text of DIR/config.json for weights of `dtype`.
std::string config_with_type(const fs::path& directory, Dtype dtype) {
    require(!directory.empty(), "expected the folder of a model, whose ", kConfigFile,
            " describes it, found none");
    const fs::path path = directory / kConfigFile;
    nlohmann::ordered_json root =
        nlohmann::ordered_json::parse(read_file(path, size_t{1} << 20), nullptr, false);
    require(root.is_object() && !root.contains("text_config"), path.string(),
            ": expected the configuration of a model of text alone");
    root.erase("quantization_config");  // the weights are written as plain numbers
    root[root.contains("dtype") ? "dtype" : "torch_dtype"] = torch_name(dtype);
    return root.dump(2) + "\n";
}

}  // namespace

void describe_model(const fs::path& directory, const DecoderConfig& config,
                    const fs::path& tokenizer, Dtype dtype) {
    const bool is_gpt2 = config.family == "gpt2";
    write_file(directory / kConfigFile,
               is_gpt2 ? format_config(config, dtype) : config_with_type(tokenizer, dtype));
    if (!is_gpt2 && !fs::equivalent(tokenizer, directory))
        copy_generation_config(tokenizer, directory);
    if (!tokenizer.empty() && !fs::equivalent(tokenizer, directory))
        copy_tokenizer(tokenizer, directory);
}

void copy_description(const fs::path& from, const fs::path& to) {
    write_file(to / kConfigFile, read_file(from / kConfigFile));
    copy_generation_config(from, to);
    copy_tokenizer(from, to);
}

void check_target(const fs::path& path, bool folder) {
    const fs::path target = fs::absolute(path).lexically_normal();
    const bool there = fs::exists(fs::symlink_status(target));
    if (folder)
        require(!there || (fs::is_directory(target) && fs::is_empty(target)), path.string(),
                ": expected a new or empty folder to write to, found something there");
    fs::path above = target;
    while (!fs::exists(above) && above.has_relative_path()) above = above.parent_path();
    if (!folder && above == target) above = target.parent_path();
    require(fs::is_directory(above), path.string(), ": expected a folder to write to, found ",
            above.string(), ", which is none");
    require(::access(above.c_str(), W_OK) == 0, path.string(), ": cannot write in ",
            above.string());
}

void make_parent(const fs::path& path) {
    std::error_code failed;
    fs::create_directories(fs::absolute(path).parent_path(), failed);
}

}  // namespace hark::gpt
