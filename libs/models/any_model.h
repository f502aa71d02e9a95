// A model of either kind.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "gpt/model_file.h"
#include "whisper/model_file.h"

namespace hark::models {

// One of the two is there.
struct AnyModel {
    std::unique_ptr<whisper::ModelFile> whisper;
    std::unique_ptr<gpt::ModelFile> gpt;

    const char* kind() const { return whisper ? "whisper" : "gpt"; }  // as in the folders' names
    const char* format() const { return whisper ? whisper->format() : gpt->format(); }
    TensorSource& tensors() const { return whisper ? whisper->tensors() : gpt->tensors(); }
};

// Opens the model at `path`. Throws Error: what its config.json calls itself, or why it is neither.
AnyModel open_any_model(const std::filesystem::path& path);

// Where --model NAME finds a model, whichever kind it is (core/models.h). Throws Error if there
// is none, UsageError if there is one of each.
std::filesystem::path find_any_model(const std::string& name);

}  // namespace hark::models
