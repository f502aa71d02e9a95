// Models as folders that Hugging Face's transformers reads.
#pragma once

#include <filesystem>
#include <string>

#include "hub/model_handle.h"

namespace hark::models {

// Returns a Whisper model's own tokenizer, or that of the folder or tiktoken rank file
// `tokenizer_path` if that is not empty. Throws Error if there is none.
whisper::Tokenizer whisper_tokenizer(const whisper::ModelFile& file,
                                     const std::string& tokenizer_path);

// Writes model.safetensors in f32, f16 or bf16, the configuration and the tokenizer. A model in the
// same format keeps its files, with another type in config.json; for others they are made from the
// model. `from` is the model's path.
void write_hugging_face_model(const ModelHandle& model, const std::filesystem::path& from,
                              const std::string& tokenizer_path, Dtype dtype,
                              const std::filesystem::path& directory);

}  // namespace hark::models
