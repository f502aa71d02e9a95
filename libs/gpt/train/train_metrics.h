// The metrics of a training step, and the speed that its speed is compared with.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/context.h"
#include "gpt/train/event_file.h"
#include "gpt/train/train_state.h"

namespace hark::gpt {

struct Metrics {
    static constexpr const char* kHeading =
        "step\tloss\tval_loss\trate\tnorm\tms\ttokens/s\tfraction\thellaswag\n";

    int64_t step = 0;
    StepResult result;
    double ms = 0, tokens_per_second = 0, fraction = 0;
    std::optional<double> val_loss, hellaswag;

    std::string line() const;      // of the table, with its line end
    std::string progress() const;  // "loss 3.2, 1000 tokens/s"
    std::vector<EventFile::Scalar> scalars() const;
};

// Whether the table on `fd` needs its heading. A file does unless it has one already, so that a run
// that is killed and resumed with `>>` makes one table. A pipe does if the run begins.
bool needs_heading(int fd, bool begins);

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point begin);

// FLOP/s of a large product of matrices of that type (f32 or bf16): the best of four, of 1024 cubed
// on the CPU, of 8192 cubed on a GPU.
double measured_peak_flops(Context& ctx, Dtype type);

}  // namespace hark::gpt
