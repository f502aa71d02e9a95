// Descriptions of models.
#pragma once

#include "core/json/json.h"
#include "hub/model_handle.h"

namespace hark::models {

// Returns a model's format, shape, number of parameters, their types, the bytes that the weights
// take at each --dtype, and the vocabulary; of a language model the types by kind of tensor, the
// bytes of keys and values at a context, and the tokens that end a text; of Whisper the alignment
// heads and languages too. The keys are in docs/formats.md. `auto` is the CPU's. Of f32 and bf16
// matrices the values are read: auto keeps them in f16 if that type holds them. Throws Error if a
// tensor is missing or has another shape than the config says.
nlohmann::ordered_json describe_model(const ModelHandle& model);

// Adds what is known of a model's origin: repository, revision, commit, license.
void describe_origin(const ModelHandle& model, const std::filesystem::path& path,
                     nlohmann::ordered_json& out);

// "15.4 MB"
std::string megabytes(uint64_t bytes);

// "4 + 4 layers of 384", for a list of models.
std::string shape_of(const ModelHandle& model);

// The description as text: a line for each key, the values in one column.
std::string as_text(const nlohmann::ordered_json& description);

}  // namespace hark::models
