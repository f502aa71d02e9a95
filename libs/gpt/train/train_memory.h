// The memory that a training run will need: --dry-run.
#pragma once

#include <string>

#include "gpt/train/train_options.h"
#include "gpt/train/train_ranks.h"

namespace hark::gpt {

// Bytes on each process's device during the steps, by owner.
struct TrainMemory {
    int64_t weights = 0, gradients = 0, moments = 0;
    int64_t activations = 0;  // with the batch and the scratch of kernels
    int64_t total() const { return weights + gradients + moments + activations; }
};

// For a Trainer with these arguments.
TrainMemory train_memory(const Context& ctx, ParallelMesh& mesh, const DecoderConfig& config,
                         const TrainOptions& options, Dtype matrices);

// The run as lines of text: shape, parameters, memory and tokens. `epoch_tokens`: those of the
// token files.
std::string describe_run(const DecoderConfig& config, const TrainOptions& options, Dtype matrices,
                         const TrainMemory& memory, uint64_t epoch_tokens);

}  // namespace hark::gpt
