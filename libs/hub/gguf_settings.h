// The settings of a language model as the keys of a GGUF file. Source: ggml's docs/gguf.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/gguf_output.h"
#include "gpt/families/config.h"
#include "gpt/families/config_reader.h"
#include "gpt/families/family.h"

namespace hark::models {

// The family whose files the model's are. GGUF has one architecture for Llama, Mistral and Mixtral,
// and one for DeepSeek-V2 and V3.
const gpt::Family& family_in_gguf(const gpt::DecoderConfig& config, const std::string& where);

// Throws Error for a family or a setting that is not written as GGUF.
void check_written(const gpt::DecoderConfig& config, const std::string& where);

// The rope's base of a GGUF file of the family that has none.
double default_theta_in_gguf(const gpt::DecoderConfig& of, const std::string& where);

struct GgufRopes {
    gpt::RopeSettings all;    // of layers without a window, or of all
    double window_theta = 0;  // the base of layers with a window; 0: the same
};
// From the folder's config.json. Throws Error for a scaling that is not written.
GgufRopes gguf_ropes(const std::filesystem::path& folder, const gpt::DecoderConfig& of);
// By what llama3's scaling divides the frequencies; empty for the others.
std::vector<float> rope_divisors(const gpt::DecoderConfig& config, const gpt::RopeSettings& rope);

// Adds general.* and the architecture's keys; `name` is the model's, `type` one of gguf_types().
void add_settings(GgufOutput& out, const gpt::DecoderConfig& config, const GgufRopes& ropes,
                  const std::string& name, const std::string& type);

}  // namespace hark::models
