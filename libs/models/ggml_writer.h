// A Whisper model as a file in whisper.cpp's format (whisper/ggml_file.h has the layout).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "whisper/model_file.h"

namespace hark::models {

// The types that the matrices of such a file may be in.
std::vector<Dtype> ggml_file_dtypes();

// Matrices are in `dtype`; in f16 and in blocks, vectors and positions are f32, and in blocks the
// convolutions are f16, as whisper.cpp has them. `vocab` as whisper_tokenizer() takes it. The file
// appears when it is whole. Throws Error where the special tokens are not where whisper.cpp
// looks for them, or a row is not in whole blocks.
// Source: whisper.cpp models/convert-pt-to-ggml.py, examples/common-ggml.cpp.
void write_ggml(whisper::ModelFile& model, const std::string& vocab, Dtype dtype,
                const std::filesystem::path& path,
                const std::function<void(const std::string&)>& warn);

}  // namespace hark::models
