// What a model that is being trained writes.
#pragma once

#include <filesystem>
#include <string>

#include "gpt/engine/generate.h"
#include "gpt/train/parameters.h"

namespace hark::gpt {

// The prompt and what the model of `parameters` (layout.size(), float32, host) goes on with, as
// gpt-generate would with the same options; the `index`-th prompt of a run. Takes the memory of a
// second copy of the parameters while it runs.
std::string sample_text(Context& ctx, const Config& config, const ParameterLayout& layout,
                        const Tensor& parameters, const Bpe& bpe, const GenerateOptions& options,
                        const std::string& prompt, uint64_t index);

// Adds a step's text to what `file` has. Throws Error naming the file where it cannot be written.
void append_sample(const std::filesystem::path& file, int64_t step, const std::string& text);

// Removes from `file` the texts of steps after `step`, and one that was not written whole. Returns
// the step of the last text that stays; -1: none.
int64_t cut_samples(const std::filesystem::path& file, int64_t step);

}  // namespace hark::gpt
