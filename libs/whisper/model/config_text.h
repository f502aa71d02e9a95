// Writes a Whisper model's description for Hugging Face's transformers.
#pragma once

#include <string>

#include "core/tensor.h"
#include "whisper/model/config.h"
#include "whisper/model/tokenizer.h"

namespace hark::whisper {

// config.json; `dtype` is that of the weights: f32, f16 or bf16.
std::string format_config(const Config& config, const SpecialTokens& special, Dtype dtype);
// generation_config.json: alignment heads, ids of languages and tasks, suppressed tokens.
std::string format_generation_config(const Config& config, const Tokenizer& tokenizer);
// preprocessor_config.json: the log-mel front end.
std::string format_preprocessor_config(const Config& config);

// transformers' name of a type: "float16" of f16. Throws Error unless f32, f16 or bf16.
std::string torch_name(Dtype dtype);

}  // namespace hark::whisper
