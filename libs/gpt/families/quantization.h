// quantization_config of a config.json: how the matrices of a Hugging Face folder are packed.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/json/json.h"
#include "formats/packed/packed_matrix.h"

namespace hark::gpt {

struct Quantization {
    std::string name;                      // "awq, 4 bits"
    std::unique_ptr<PackedFormat> format;  // null: mxfp4, which its family reads
    Dtype model_type = Dtype::f32;         // dtype of config.json: of activations, and of tensors
};

// Of a parsed config.json; nullopt if its weights are plain. Throws Error that begins with `where`
// and names the key for a method that is not read, or a setting of it.
std::optional<Quantization> parse_quantization(const nlohmann::json& config,
                                               const std::string& where);
std::optional<Quantization> load_quantization(const std::filesystem::path& directory);

}  // namespace hark::gpt
