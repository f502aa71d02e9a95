// What the quantization_config of compressed-tensors says.
#pragma once

#include "formats/packed/scale_grid.h"
#include "gpt/families/json_config.h"
#include "gpt/families/quantization.h"

namespace hark::gpt {

// Throws Error with the key for a format that is not read, for weights of another kind than its
// own, and for matrices that are rotated or sparse.
Quantization read_compressed_tensors(const nlohmann::json& settings, const JsonConfig& in);

// [128, 128], or "128x128". Throws Error that begins with `where`.
Cell block_size_of(const nlohmann::json& value, const std::string& where);

}  // namespace hark::gpt
