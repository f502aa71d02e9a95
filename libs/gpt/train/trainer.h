// A training run's arithmetic: parameters, gradients and moments, and a step over them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "gpt/train/batch_reader.h"
#include "gpt/train/shard.h"
#include "gpt/train/token_windows.h"
#include "gpt/train/train_options.h"
#include "gpt/train/train_ranks.h"
#include "gpt/train/train_state.h"
#include "gpt/train/training.h"
#include "gpt/train/zero_buckets.h"
#include "kernels/runtime/recorded_graph.h"
#include "kernels/runtime/side_stream.h"

namespace hark::gpt {

// A step whose loss or norm is not finite; all ranks throw it.
class Diverged : public Error {
  public:
    using Error::Error;
};

// Parameters, gradients and moments are f32 on the context's device. If `matrices` is bf16,
// products use a copy of the matrices, stochastically rounded after every step with a seed of the
// step, and activations are bf16. How ranks share a step: docs/models/gpt2.md.
class Trainer {
  public:
    // Trains on `windows`, which must outlive it. `separator`: the token before each document if
    // documents are masked, else -1.
    Trainer(Context& ctx, ParallelMesh& mesh, const DecoderConfig& config,
            const TrainOptions& options, Dtype matrices, const TokenWindows& windows,
            int32_t separator);

    const ParameterLayout& layout() const { return shard_.full(); }
    const ModelTensors& weights() const { return weights_; }  // those of the products

    // Sets a state tensor to what `write` fills: layout().size() floats on the host.
    void fill(StateTensor which, const std::function<void(Tensor)>& write);
    // A state tensor, layout().size() floats on the first rank's host; none on other ranks. All
    // ranks must call it. The result is valid as long as to_host()'s.
    Tensor gather(StateTensor which);
    Outliers& outliers() { return outliers_; }

    // Call it when the parameters have been filled with those of `step`.
    void on_parameters_loaded(int64_t step) { round_matrices(step); }

    // Runs step `step` >= 1 on its sequences. Throws Diverged if the loss or the gradients' norm is
    // not finite; the parameters are then those of the step before.
    StepResult step(int64_t step);

    // The mean loss over the first windows: as many as `tokens` has room for, at least one.
    double validate(const TokenWindows& windows, int64_t tokens);

    // FLOPs of a step on all ranks, per token 6 for each weight of a product and 6 L H D T for
    // attention, T = the length.
    double flops_per_step() const;

    // Bytes that it and the context's arena have on the device.
    size_t memory_bytes() const;
    // Peak bytes of activations and scratch.
    size_t activation_peak() const;

  private:
    Tensor parameters() const { return parameters_.slice(0, layout_.size()); }
    void add_gradients(uint64_t first);  // of a batch
    void compute(Context& ctx);          // the same, of batch_
    void sum_over_ranks(Context& ctx, size_t bucket);
    void round_matrices(int64_t step);  // matrices_, from the parameters
    double sum_of_losses();             // of the last batch; waits for it
    void clip();
    Tensor gather_moment(const Tensor& moment);
    void update(int64_t step, float rate);
    void update_buckets(const AdamW& with);

    Context& ctx_;
    ParallelMesh& mesh_;
    DecoderConfig config_;
    const TrainOptions& options_;
    Shard shard_;
    const ParameterLayout& layout_;  // of this rank's slice
    Arena memory_;
    bool sharded_;                   // the ranks share the update and its moments
    bool overlap_;                   // gradients are summed over ranks during backward
    Tensor parameters_, gradients_;  // padded with zeros to padded_size()
    Tensor m_, v_;
    Tensor matrices_;               // (layout.decayed()) bf16, or none
    Tensor losses_, clip_, norms_;  // (rows of a batch), (2), (ranks * buckets + 1)
    Batch batch_;
    ModelTensors weights_, d_weights_;
    TrainingOrder order_;
    BatchReader reader_;
    BatchRows val_rows_;
    std::vector<ZeroBucket> buckets_;  // one if the moments are not shared
    std::optional<SideStream> side_;   // of the buckets' collectives, if shared
    std::optional<GraphScratch> scratch_;
    std::optional<RecordedGraph> recorded_;  // a batch's gradients, on a GPU, as a graph
    Outliers outliers_;
};

}  // namespace hark::gpt
