// Texts of a model in training.
#pragma once

#include <filesystem>
#include <string>

#include "gpt/train/parameters.h"

namespace hark {
class Bpe;
struct Context;
}  // namespace hark

namespace hark::gpt {

struct GenerateOptions;

// The prompt and its completion by the model of `parameters` (layout.size(), float32, host), as
// gpt-generate's for the `index`-th prompt with the same options. Needs the memory of a second copy
// of the parameters.
std::string sample_text(Context& ctx, const DecoderConfig& config, const ParameterLayout& layout,
                        const Tensor& parameters, const Bpe& bpe, const GenerateOptions& options,
                        const std::string& prompt, uint64_t index);

// Appends a step's text to `file`. Throws Error with the file if it cannot be written.
void append_sample(const std::filesystem::path& file, int64_t step, const std::string& text);

// Removes from `file` the texts of steps after `step`, and one that is incomplete. Returns the step
// of the last text that stays; -1 if there is none.
int64_t cut_samples(const std::filesystem::path& file, int64_t step);

}  // namespace hark::gpt
