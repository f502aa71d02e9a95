// A model's directory as Hugging Face's transformers has it: what is written of a trained model.
#pragma once

#include <filesystem>
#include <string_view>

#include "gpt/train/parameters.h"

namespace hark::gpt {

// What such a directory has besides the weights: the configuration, and a tokenizer's files.
inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kTokenizerFiles[] = {
    "tokenizer.json",          "vocab.json",       "merges.txt", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json"};

// Writes them, whole or not at all: those of `tokenizer` that are there, none where it is empty.
// `dtype`: of the weights.
void describe_model(const std::filesystem::path& directory, const Config& config,
                    const std::filesystem::path& tokenizer, Dtype dtype);

// Copies what describe_model() has written.
void copy_description(const std::filesystem::path& from, const std::filesystem::path& to);

// Throws Error unless `path` can be written later: with `folder` nothing or an empty directory is
// there, and what is nearest above it is a directory that may be written to.
void check_target(const std::filesystem::path& path, bool folder);

// A whole such directory, new or empty so far, of parameters (layout.size(), float32, host) as f32,
// f16 or bf16. Throws Error where it cannot be written, or a value is too large for f16.
void export_model(const std::filesystem::path& directory, const Config& config,
                  const std::filesystem::path& tokenizer, const ParameterLayout& layout,
                  const Tensor& parameters, Dtype dtype);

}  // namespace hark::gpt
