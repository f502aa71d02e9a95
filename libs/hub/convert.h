// A model in another format or type.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/model_handle.h"

namespace hark::models {

struct ConvertOptions {
    std::string format;  // "safetensors", "ggml" or "gguf"; empty: by the ending of the output's name
    std::string type = "f16";
    std::string tokenizer;  // for a model that has none: a folder or a tiktoken rank file
};

// The types that a format can be written in.
std::vector<std::string> written_types(const std::string& format);

// Writes the model at `from` to `to`, which appears once it is whole: safetensors, a new folder as
// Hugging Face's transformers reads it; ggml, a file as whisper.cpp reads it, for Whisper alone; or
// gguf, a file as llama.cpp reads it, for language models (gguf_writer.h).
// `warn` gets what is lost. Throws UsageError for a type that the format does not have and for an
// ending of a format that is not written; Error for a tensor or tokenizer that is missing, a value
// that is not finite or too large for f16, and a full disk.
void convert_model(const std::filesystem::path& from, const std::filesystem::path& to,
                   const ConvertOptions& options,
                   const std::function<void(const std::string&)>& warn);

}  // namespace hark::models
