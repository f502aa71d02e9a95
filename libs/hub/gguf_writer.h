// Language models as GGUF files, which llama.cpp reads (layout: formats/gguf.h).
#pragma once

#include <filesystem>
#include <string>

#include "gpt/families/model_file.h"

namespace hark::models {

// Writes the model of the Hugging Face folder `from`; `type` is one of gguf_types(). The file
// appears once it is whole. Throws Error for a family or a setting that is not written, and as
// values_of() and add_vocabulary() do. Source of the keys: ggml's docs/gguf.md.
void write_gguf(gpt::ModelFile& model, const std::filesystem::path& from, const std::string& type,
                const std::filesystem::path& to);

}  // namespace hark::models
