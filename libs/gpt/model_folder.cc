#include "gpt/model_folder.h"

#include "core/error.h"
#include "core/files.h"

namespace hark::gpt {
namespace {

namespace fs = std::filesystem;

void write_whole(const fs::path& file, std::string_view text) {
    AtomicFile out(file);
    out.write(text);
    out.commit();
}

}  // namespace

void describe_model(const fs::path& directory, const Config& config, const fs::path& tokenizer,
                    Dtype dtype) {
    write_whole(directory / kConfigFile, format_config(config, dtype));
    if (tokenizer.empty() || fs::equivalent(tokenizer, directory)) return;
    for (const char* name : kTokenizerFiles)
        if (fs::exists(tokenizer / name))
            write_whole(directory / name, read_file(tokenizer / name));
}

void export_model(const fs::path& directory, const Config& config, const fs::path& tokenizer,
                  const ParameterLayout& layout, const Tensor& parameters, Dtype dtype) {
    std::error_code failed;
    fs::create_directories(directory, failed);
    require(!failed, directory.string(), ": cannot make the folder: ", failed.message());
    layout.write(parameters, directory / "model.safetensors", dtype);
    describe_model(directory, config, tokenizer, dtype);
}

}  // namespace hark::gpt
