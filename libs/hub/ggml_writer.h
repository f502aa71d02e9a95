// Whisper models as files in whisper.cpp's format (layout: whisper/model/ggml_file.h).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "whisper/model/model_file.h"

namespace hark::models {

// The types for the matrices of such a file.
std::vector<Dtype> ggml_file_dtypes();

// Matrices are in `dtype`. In f16 and in quantised files vectors and positions are f32; in
// quantised files the convolutions are f16, as whisper.cpp has them. `tokenizer_path` as for
// whisper_tokenizer(). The file appears once it is whole. Throws Error if the special tokens are
// not at whisper.cpp's ids, or a row is not a whole number of blocks. Source: whisper.cpp
// models/convert-pt-to-ggml.py, examples/common-ggml.cpp.
void write_ggml(whisper::ModelFile& model, const std::string& tokenizer_path, Dtype dtype,
                const std::filesystem::path& path,
                const std::function<void(const std::string&)>& warn);

}  // namespace hark::models
