// What a training run begins with, or goes on from.
#pragma once

#include <filesystem>
#include <optional>

#include "gpt/train/run_folder.h"
#include "gpt/train/train_options.h"
#include "text/bpe.h"

namespace hark::gpt {

// Where a run's model comes from: its own folder, --model, or --tokenizer and a shape.
struct Start {
    Config config;
    std::filesystem::path directory;  // that has its tokenizer, or none
    std::optional<Bpe> bpe;
    std::optional<int32_t> end_of_text;
};

// Throws UsageError where the options leave a new model's shape open, Error as the readers do, and
// where a tokenizer has more tokens than the model.
Start start_of(const TrainOptions& options, const RunFolder& folder);

// The parameters (layout.size()), on the host, of a run that has no checkpoint yet.
void begin_parameters(const TrainOptions& options, const Start& start,
                      const ParameterLayout& layout, Tensor parameters);

}  // namespace hark::gpt
