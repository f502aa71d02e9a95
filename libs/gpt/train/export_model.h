// Writes the trained parameters as a model: a Hugging Face directory or llm.c's file.
#pragma once

#include <filesystem>

#include "gpt/train/parameters.h"

namespace hark::gpt {

// Writes a complete model directory, new or empty before, from parameters (layout.size(), float32,
// host) as f32, f16 or bf16. Throws Error if it cannot, or if a value is too large for f16.
void export_model(const std::filesystem::path& directory, const DecoderConfig& config,
                  const std::filesystem::path& tokenizer, const ParameterLayout& layout,
                  const Tensor& parameters, Dtype dtype);

// Writes the parameters (layout.size(), float32, host) in llm.c's format as f32 or bf16, whole or
// not at all. Throws Error as check_llmc() does.
void write_llmc(const std::filesystem::path& file, const DecoderConfig& config,
                const ParameterLayout& layout, const Tensor& parameters, Dtype dtype);

}  // namespace hark::gpt
