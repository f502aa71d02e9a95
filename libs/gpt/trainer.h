// A training run's arithmetic: parameters, gradients and moments, and a step over them.
#pragma once

#include <optional>
#include <vector>

#include "gpt/batch_reader.h"
#include "gpt/outliers.h"
#include "gpt/token_windows.h"
#include "gpt/train_options.h"
#include "gpt/training.h"
#include "kernels/captured.h"

namespace hark::gpt {

struct StepResult {
    double loss = 0;  // mean over the step's targets, in nats
    double norm = 0;  // of the gradients, before clipping
    double rate = 0;
    bool skipped = false;  // an outlier, which has left the parameters as they were
};

// The windows that tell outliers: part of a run's state.
struct Outliers {
    OutlierWindow losses, norms;
};

// Parameters, gradients and moments are f32 on the context's device. Where `matrices` is bf16, a
// GPU multiplies with a copy of the matrices that is rounded by chance after every step, with a
// seed of the step, and its activations are bf16.
class Trainer {
  public:
    // Trains on `windows`, which must outlive it. `separator`: where documents are masked, the
    // token in front of each; else -1.
    Trainer(Context& ctx, const Config& config, const TrainOptions& options, Dtype matrices,
            const TokenWindows& windows, int32_t separator);

    const ParameterLayout& layout() const { return layout_; }
    const ModelTensors& weights() const { return weights_; }  // as they are multiplied with
    Tensor parameters() const { return parameters_; }
    Tensor m() const { return m_; }
    Tensor v() const { return v_; }
    Outliers& outliers() { return outliers_; }

    // To be called when parameters() have been written from outside, as they are behind `step`.
    void parameters_are_of(int64_t step);

    // Step `step`, from 1 on, of the run: the sequences that are its turn. Throws Error where the
    // loss or the gradients' norm is not a finite number; the parameters are then those of the step
    // before.
    StepResult step(int64_t step);

    // The mean loss over the first `tokens` tokens of the windows, as many whole ones as fit, one
    // at least.
    double validate(const TokenWindows& windows, int64_t tokens);

    // Floating-point operations of a step: 6 (12 L C^2 + V C) + 6 L C T a token, T the length.
    double flops_a_step() const;

  private:
    double add_gradients(uint64_t first);  // of a batch; returns the sum of its losses
    void update(int64_t step, float rate);

    Context& ctx_;
    Config config_;
    const TrainOptions& options_;
    ParameterLayout layout_;
    Arena memory_;
    Tensor parameters_, gradients_, m_, v_;
    Tensor matrices_;       // (layout.decayed()) bf16, or none
    Tensor losses_, clip_;  // (rows of a batch), (2)
    Batch batch_;
    ModelTensors weights_, d_weights_, moments_;  // moments_: of m_
    TrainingOrder order_;
    BatchReader reader_;
    BatchRows val_rows_;
    std::optional<Captured> recorded_;  // a batch's gradients, on a GPU
    Outliers outliers_;
};

}  // namespace hark::gpt
