// The types of a GGUF file's tensors.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"
#include "gpt/families/tensor_spec.h"

namespace hark::gpt {

// The names of --type: f32, f16, bf16, the quantised types, and the mixtures q4_k_m and q5_k_m.
std::vector<std::string> gguf_types();

// The type of a tensor in a file of `type`. Vectors and routers are f32. In quantised files the
// output table, or the token table in its place, has q6_k, or the type if that is q8_0; q4_k_m and
// q5_k_m have more bits for values and the second matrix of MLPs and experts in some layers; keys
// and values of models with eight experts have q8_0; where blocks do not divide the rows, a type of
// smaller blocks is taken. Source: llama.cpp src/llama-quant.cpp.
Dtype gguf_type_of(const TensorSpec& spec, const DecoderConfig& config, const std::string& type);

// general.file_type of such a file (llama.h, enum llama_ftype).
int64_t gguf_file_type(const std::string& type);

}  // namespace hark::gpt
