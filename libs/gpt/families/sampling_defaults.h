// How a model's publisher samples from it, as its files say.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace hark {
class GgufFile;
}

namespace hark::gpt {

// By the names of generation_config.json: temperature, top_k, ... Only what the files say.
using SamplingDefaults = std::map<std::string, double>;

// From DIR/generation_config.json, if there is one; do_sample is not read. Throws Error naming the
// file and the key if a value is not a number.
SamplingDefaults read_sampling_defaults(const std::filesystem::path& directory);
// From the keys general.sampling.*. Source: ggml gguf-py/gguf/constants.py.
SamplingDefaults sampling_defaults_of(const GgufFile& file);

}  // namespace hark::gpt
