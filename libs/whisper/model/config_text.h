// A Whisper model's description as the files that Hugging Face's transformers reads.
#pragma once

#include <string>

#include "core/tensor.h"
#include "whisper/model/config.h"
#include "whisper/model/tokenizer.h"

namespace hark::whisper {

// config.json; `dtype`: of the weights, f32, f16 or bf16.
std::string format_config(const Config& config, const SpecialTokens& special, Dtype dtype);
// generation_config.json: alignment heads, the ids of languages and tasks, what is suppressed.
std::string format_generation_config(const Config& config, const Tokenizer& tokenizer);
// preprocessor_config.json: the log-mel front end.
std::string format_preprocessor_config(const Config& config);

// "float16", as transformers calls f16; throws Error for other types than f32, f16 and bf16.
std::string torch_name(Dtype dtype);

}  // namespace hark::whisper
