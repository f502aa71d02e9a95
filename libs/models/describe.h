// A model's description.
#pragma once

#include <nlohmann/json.hpp>

#include "models/any_model.h"

namespace hark::models {

// Format, shape, number of parameters, the types that they are stored in, the bytes that weights
// take in memory at each --dtype, vocabulary; of Whisper alignment heads and languages:
// docs/formats.md has the keys. `auto` is the CPU's. Reads values of f32 and bf16 matrices alone,
// which auto keeps in f16 where that holds them. Throws Error where a tensor is missing or has
// another shape than the config says.
nlohmann::ordered_json describe_model(const AnyModel& model);

// "15.4 MB"
std::string megabytes(uint64_t bytes);

// "4 + 4 layers of 384", as a list of models has it.
std::string shape_of(const AnyModel& model);

// The same to read: a line a key, the values one below the other.
std::string as_text(const nlohmann::ordered_json& description);

}  // namespace hark::models
