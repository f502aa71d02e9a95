// Stages on a GPU's own time, for profiles: the host only launches them.
#pragma once

#include <memory>

#include "core/context.h"
#include "core/profile/profile.h"

namespace hark {

// Where the library's events are, and NVTX's ranges.
struct CudaTiming {
    // An event after all launches so far on the context's stream.
    std::shared_ptr<void> (*mark)(Context& ctx);
    // Milliseconds from one event to a later one; below 0 if the GPU has not reached that.
    double (*elapsed)(void* from, void* to);
    // Waits for an event.
    void (*wait)(void* mark);
    SpanRanges ranges;
};

// The launches on the context's stream while it lives, as a span of a track of its own. Nothing on
// the CPU, or while nothing is measured. Not within a recording (recorded_graph.h).
class GpuSpan {
  public:
    // `stage` is a literal: gpu.encode, gpu.prefill or gpu.step.
    GpuSpan(Context& ctx, const char* stage) {
        if (is_measured() && ctx.on_cuda()) begin(ctx, stage);
    }
    ~GpuSpan() {
        if (ctx_) end();
    }
    GpuSpan(const GpuSpan&) = delete;
    GpuSpan& operator=(const GpuSpan&) = delete;

  private:
    void begin(Context& ctx, const char* stage);
    void end() noexcept;

    Context* ctx_ = nullptr;
    const char* stage_ = nullptr;
    std::shared_ptr<void> begin_;
};

}  // namespace hark
