// A training run's arithmetic: parameters, gradients and moments, and a step over them.
#pragma once

#include <memory>
#include <vector>

#include "gpt/outliers.h"
#include "gpt/token_windows.h"
#include "gpt/train_options.h"
#include "gpt/training.h"

namespace hark::gpt {

// The rows of a batch on the host, sequence after sequence.
class BatchRows {
  public:
    // With `separator` >= 0 that token begins a sequence of its own, with positions from 0 on.
    explicit BatchRows(int32_t separator) : separator_(separator) {}
    void clear() { rows_ = {}; }
    void add(std::span<const int32_t> window);  // tokens, and the last one's successor
    Batch view() { return rows_.view(); }

  private:
    int32_t separator_;
    PackedRows rows_;
};

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

class Trainer {
  public:
    // `separator`: where documents are masked, the token in front of each; else -1.
    Trainer(Context& ctx, const Config& config, const TrainOptions& options, int32_t separator);

    const ParameterLayout& layout() const { return layout_; }
    Tensor parameters() const { return parameters_; }
    Tensor m() const { return m_; }
    Tensor v() const { return v_; }
    Outliers& outliers() { return outliers_; }

    // Step `step`, from 1 on, of the run: the sequences that are its turn in `order`. Throws Error
    // where the loss or the gradients' norm is not a finite number; the parameters are then those
    // of the step before.
    StepResult step(int64_t step, const TrainingOrder& order);

    // The mean loss over the first `tokens` tokens of the windows, as many whole ones as fit, one
    // at least.
    double validate(const TokenWindows& windows, int64_t tokens);

    // Floating-point operations of a step: 6 (12 L C^2 + V C) + 6 L C T a token, T the length.
    double flops_a_step() const;

  private:
    void update(Tensor clip, int64_t step, float rate);

    Context& ctx_;
    Config config_;
    const TrainOptions& options_;
    ParameterLayout layout_;
    Arena memory_;
    Tensor parameters_, gradients_, m_, v_;
    ModelTensors weights_, d_weights_, moments_;  // moments_: of m_
    BatchRows rows_;
    std::vector<int32_t> window_;
    Outliers outliers_;
};

}  // namespace hark::gpt
