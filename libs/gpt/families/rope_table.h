// Inverse frequencies of rotary positions.
#pragma once

#include "gpt/families/config.h"
#include "gpt/families/config_reader.h"

namespace hark::gpt {

// What yarn multiplies attention's scale by for mscale, or its square: 1 for a factor up to 1.
// Source: DeepSeek-V2's modeling_deepseek.py, yarn_get_mscale.
double yarn_scale(double factor, double mscale);

// The table for `rotary` channels of a head (even) in a model with a context of n_positions. Throws
// Error that begins with `where` for an unknown type or factors of another number.
// Source: transformers modeling_rope_utils.py, and GGUF's rope_freqs.weight as in llama.cpp.
RopeTable rope_table(const RopeSettings& settings, int64_t rotary, int64_t n_positions,
                     const std::string& where);

}  // namespace hark::gpt
