// A training run's arithmetic: parameters, gradients and moments, and a step over them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "gpt/train/batch_reader.h"
#include "gpt/train/outliers.h"
#include "gpt/train/segments.h"
#include "gpt/train/shard.h"
#include "gpt/train/token_windows.h"
#include "gpt/train/train_options.h"
#include "gpt/train/train_ranks.h"
#include "gpt/train/training.h"
#include "kernels/runtime/recorded_graph.h"
#include "kernels/runtime/side_stream.h"

namespace hark::gpt {

struct StepResult {
    double loss = 0;  // mean over the step's targets, in nats
    double norm = 0;  // of the gradients, before clipping
    double rate = 0;
    bool skipped = false;  // an outlier, which has left the parameters as they were
};

// A step without finite numbers; all ranks throw it alike.
class Diverged : public Error {
  public:
    using Error::Error;
};

// The windows that tell outliers: part of a run's state.
struct Outliers {
    OutlierWindow losses, norms;
};

// What a run keeps: vectors of one layout.
enum class Values { parameters, m, v };

// Parameters, gradients and moments are f32 on the context's device. Where `matrices` is bf16,
// products are made with a copy of the matrices that is rounded by chance after every step, with a
// seed of the step, and activations are bf16.
//
// Several ranks each compute their share of a step's sequences. Parameters and gradients are whole
// on each of them; in a grid with rows they are what a rank of a row has (shard.h), and the ranks
// of a column share. With AdamW the sum of the gradients is left in parts, of which each rank has
// one, and with it that part of the moments and of the work; the parameters are then put together.
// Each segment of the parameters (segments.h) is divided among the ranks. Where it pays, segments
// are blocks: if a step is one batch, their gradients are summed during backward (on GPUs beside
// it), and a segment's parameters are gathered while the next one is updated. Source: Rajbhandari
// et al. 2020 (ZeRO, stage 1). With Muon, whose matrices are updated whole, every rank
// does all of the update.
class Trainer {
  public:
    // Trains on `windows`, which must outlive it, as `grid` and `options`. `separator`: where
    // documents are masked, the token in front of each; else -1.
    Trainer(Context& ctx, Grid& grid, const Config& config, const TrainOptions& options,
            Dtype matrices, const TokenWindows& windows, int32_t separator);

    const ParameterLayout& layout() const { return shard_.whole(); }
    const ModelTensors& weights() const { return weights_; }  // as they are multiplied with

    // Gives `values`, as `write` makes them, all layout().size() of them on the host.
    void fill(Values values, const std::function<void(Tensor)>& write);
    // All layout().size() of them, on the host, as long as what to_host() gives; on other ranks
    // than the first none. For all ranks to call.
    Tensor whole(Values values);
    Outliers& outliers() { return outliers_; }

    // To be called when the parameters have been filled, as they are behind `step`.
    void parameters_are_of(int64_t step);

    // Step `step`, from 1 on, of the run: the sequences that are its turn. Throws Diverged where
    // the loss or the gradients' norm is not a finite number; the parameters are then those of the
    // step before.
    StepResult step(int64_t step);

    // The mean loss over the first `tokens` tokens of the windows, as many whole ones as fit, one
    // at least.
    double validate(const TokenWindows& windows, int64_t tokens);

    // Floating-point operations of a step on all ranks: 6 (12 L C^2 + V C) + 6 L C T a token, T the
    // length.
    double flops_per_step() const;

    // Bytes that it and the context's arena have on the device.
    size_t memory_bytes() const;
    // The most bytes of activations and scratch at a time.
    size_t activation_peak() const;

  private:
    Tensor parameters() const { return parameters_.slice(0, layout_.size()); }
    void add_gradients(uint64_t first);  // of a batch
    void compute(Context& ctx);          // the same, of batch_
    void sum_over_ranks(Context& ctx, size_t segment);
    double sum_of_losses();  // of the batch before; waits for it
    void clip();
    Tensor together(const Tensor& moment);
    void update(int64_t step, float rate);
    void update_segments(const AdamW& with);

    Context& ctx_;
    Grid& grid_;
    Config config_;
    const TrainOptions& options_;
    Shard shard_;
    const ParameterLayout& layout_;  // of this rank's part
    Arena memory_;
    bool sharded_;                   // the optimizer's work and its moments
    bool beside_;                    // the ranks' sums are made beside backward
    Tensor parameters_, gradients_;  // with zeros behind, so that they divide by the ranks
    Tensor m_, v_;
    Tensor matrices_;               // (layout.decayed()) bf16, or none
    Tensor losses_, clip_, norms_;  // (rows of a batch), (2), (ranks * segments + 1)
    Batch batch_;
    ModelTensors weights_, d_weights_;
    TrainingOrder order_;
    BatchReader reader_;
    BatchRows val_rows_;
    std::vector<Segment> segments_;   // one where the moments are whole
    std::optional<SideStream> side_;  // where segments go between the ranks, if in parts
    std::optional<GraphScratch> scratch_;
    std::optional<RecordedGraph> recorded_;  // a batch's gradients, on a GPU
    Outliers outliers_;
};

}  // namespace hark::gpt
