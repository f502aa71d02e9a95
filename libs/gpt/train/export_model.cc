#include "gpt/train/export_model.h"

#include "core/error.h"
#include "gpt/families/llmc_file.h"
#include "gpt/families/model_folder.h"

namespace hark::gpt {

void export_model(const std::filesystem::path& directory, const DecoderConfig& config,
                  const std::filesystem::path& tokenizer, const ParameterLayout& layout,
                  const Tensor& parameters, Dtype dtype) {
    std::error_code failed;
    std::filesystem::create_directories(directory, failed);
    require(!failed, directory.string(), ": cannot make the folder: ", failed.message());
    layout.write(parameters, directory / "model.safetensors", dtype);
    describe_model(directory, config, tokenizer, dtype);
}

void write_llmc(const std::filesystem::path& file, const DecoderConfig& config,
                const ParameterLayout& layout, const Tensor& parameters, Dtype dtype) {
    write_llmc(
        file, config,
        [&](const std::string& name) { return parameters.as<float>() + layout.at(name).offset; },
        dtype);
}

}  // namespace hark::gpt
