// The model that a training run starts or resumes from.
#pragma once

#include <filesystem>
#include <optional>

#include "gpt/families/config.h"
#include "text/bpe.h"

namespace hark::gpt {

class ParameterLayout;
class RunFolder;
struct TrainOptions;

// The model of the run's own folder, of --model, or of --tokenizer and a shape.
struct InitialModel {
    DecoderConfig config;
    std::filesystem::path directory;  // of its tokenizer; empty: none
    std::optional<Bpe> bpe;
    std::optional<int32_t> end_of_text;
};

// Throws Error if the options leave a new model's shape open, if the tokenizer has more tokens than
// the model, and as the readers do.
InitialModel resolve_initial_model(const TrainOptions& options, const RunFolder& folder);

// Fills the parameters (layout.size(), host) of a run that has no checkpoint yet.
void init_parameters(const TrainOptions& options, const InitialModel& initial,
                     const ParameterLayout& layout, Tensor parameters);

}  // namespace hark::gpt
