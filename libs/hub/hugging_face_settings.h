// The settings of a GGUF file's language model as the files of a Hugging Face folder.
#pragma once

#include <filesystem>

#include "formats/gguf.h"
#include "gpt/families/model_file.h"

namespace hark::models {

// Writes config.json, for weights of `dtype`, and generation_config.json, and returns the config
// that the former is read as. Throws Error for a family that is not written, and for a setting that
// config.json cannot say.
gpt::DecoderConfig write_settings(const GgufFile& file, gpt::ModelFile& model, Dtype dtype,
                                  const std::filesystem::path& directory);

}  // namespace hark::models
