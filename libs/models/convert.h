// A model in another format or type.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/any_model.h"

namespace hark::models {

struct ConvertOptions {
    std::string format;  // "hf" or "ggml"; empty: as the path to write to ends
    std::string dtype = "f16";
    std::string vocab;  // of a model that carries none: a directory or a tiktoken rank file
};

// The formats, and of one of them the types that it is written in.
std::vector<std::string> written_formats();
std::vector<std::string> written_dtypes(const std::string& format);

// Writes the model at `from` to `to`, which appears when it is whole: hf, a new directory as
// Hugging Face's transformers reads it; ggml, a file as whisper.cpp reads it, of Whisper alone.
// What gets lost goes to `warn`. Throws UsageError where the format does not have the type, or is
// not given and a path ends as files of a format do that is not written. Error:
// a tensor or a vocabulary that is missing, a value that is not finite or beyond f16, a full disk.
void convert_model(const std::filesystem::path& from, const std::filesystem::path& to,
                   const ConvertOptions& options,
                   const std::function<void(const std::string&)>& warn);

}  // namespace hark::models
