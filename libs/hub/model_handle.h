// A model of either kind.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "gpt/families/model_file.h"
#include "whisper/model/model_file.h"

namespace hark::models {

// Exactly one of the two is set.
struct ModelHandle {
    std::unique_ptr<whisper::ModelFile> whisper;
    std::unique_ptr<gpt::ModelFile> gpt;

    const char* kind() const { return whisper ? "whisper" : "gpt"; }  // as in the folders' names
    const char* format() const { return whisper ? whisper->format() : gpt->format(); }
    TensorSource& tensors() const { return whisper ? whisper->tensors() : gpt->tensors(); }
};

// Opens the model at `path`. Throws Error with the type in its config.json, or why it is neither.
ModelHandle open_any_model(const std::filesystem::path& path);

// Reads the model's tokenizer. Throws Error naming what of its files is missing or wrong; of a
// format without a vocabulary it names --tokenizer.
void check_tokenizer(const ModelHandle& model);

// find_models() for a command that takes one model. Throws Error if there is one of each kind.
std::filesystem::path find_any_model(const std::string& name);

}  // namespace hark::models
