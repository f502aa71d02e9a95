// The GPUs of this machine during a run, as counters of a trace.
#pragma once

#include <functional>
#include <string>

#include "operations/doctor/nvml.h"

namespace hark::trace {

// A line of a trace: a moment of a GPU at `ns` of CLOCK_MONOTONIC.
std::string gpu_line(const doctor::GpuSample& sample, int64_t ns);

// Writes a line per GPU five times per second until SIGINT or SIGTERM comes, or until the process
// that has started this one ends. Throws Error if there is no GPU that can be asked.
void watch_gpus(const std::function<void(const std::string& text)>& write);

}  // namespace hark::trace
