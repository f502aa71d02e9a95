// Writes a trained model as a directory that Hugging Face's transformers reads.
#pragma once

#include <filesystem>
#include <string_view>

#include "gpt/families/config.h"

namespace hark::gpt {

// The directory's files other than weights: the configuration, and those of a tokenizer with its
// chat template.
inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kTokenizerFiles[] = {
    "tokenizer.json",          "vocab.json",        "merges.txt",          "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json",
    "tokenizer.model",         "spiece.model"};

// Writes the configuration and copies the tokenizer files that exist in `tokenizer` (empty: none),
// each whole or not at all. `dtype`: of the weights. The configuration of another family than GPT-2
// is that in `tokenizer`, the folder of the model that was read, with this type; throws Error if it
// has none, or is that of a model of more than text.
void describe_model(const std::filesystem::path& directory, const DecoderConfig& config,
                    const std::filesystem::path& tokenizer, Dtype dtype);

// Copies what describe_model() has written.
void copy_description(const std::filesystem::path& from, const std::filesystem::path& to);

// Throws Error unless `path` can be written later: its nearest existing parent is a writable
// directory, and with `folder` it is missing or an empty directory.
void check_target(const std::filesystem::path& path, bool folder);

// Makes the folder that `path` is in; if that fails, writing to `path` says why.
void make_parent(const std::filesystem::path& path);

}  // namespace hark::gpt
