#include "gpt/families/model_folder.h"

#include <unistd.h>

#include "core/error.h"
#include "core/files.h"

namespace hark::gpt {
namespace {

namespace fs = std::filesystem;

// Copies the tokenizer files that exist in `from`.
void copy_tokenizer(const fs::path& from, const fs::path& to) {
    for (const char* name : kTokenizerFiles)
        if (fs::exists(from / name)) write_file(to / name, read_file(from / name));
}

}  // namespace

void describe_model(const fs::path& directory, const DecoderConfig& config,
                    const fs::path& tokenizer, Dtype dtype) {
    write_file(directory / kConfigFile, format_config(config, dtype));
    if (!tokenizer.empty() && !fs::equivalent(tokenizer, directory))
        copy_tokenizer(tokenizer, directory);
}

void copy_description(const fs::path& from, const fs::path& to) {
    write_file(to / kConfigFile, read_file(from / kConfigFile));
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

}  // namespace hark::gpt
