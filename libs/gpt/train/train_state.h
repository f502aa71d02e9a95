// What a step of a training run gives, and what of a run is stored.
#pragma once

#include "gpt/train/outliers.h"

namespace hark::gpt {

struct StepResult {
    double loss = 0;  // mean over the step's targets, in nats
    double norm = 0;  // of the gradients, before clipping
    double rate = 0;
    bool skipped = false;  // an outlier: the parameters are as before
};

// The windows that detect outliers: part of a run's state.
struct Outliers {
    OutlierWindow losses, norms;
};

// The tensors of a run's state, all in the parameters' layout.
enum class StateTensor { parameters, m, v };

}  // namespace hark::gpt
