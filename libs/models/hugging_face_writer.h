// A model as a directory that Hugging Face's transformers reads.
#pragma once

#include <filesystem>
#include <string>

#include "models/any_model.h"

namespace hark::models {

// The tokenizer of a Whisper model: its own, or where `vocab` is not empty that of a directory or
// of a tiktoken rank file. Throws Error if there is none.
whisper::Tokenizer whisper_tokenizer(const whisper::ModelFile& file, const std::string& vocab);

// Writes model.safetensors in f32, f16 or bf16, the configuration and the tokenizer. Those of a
// directory of the same format are its own with another type; of others they are made from what
// their files tell. `from`: where the model was opened.
void write_hugging_face_model(const AnyModel& model, const std::filesystem::path& from,
                              const std::string& vocab, Dtype dtype,
                              const std::filesystem::path& directory);

}  // namespace hark::models
