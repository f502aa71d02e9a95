#include "kernels/captured.h"

#include "kernels/cuda_library.h"

namespace hark {

// No stage is timed in a recording: on_stage is left empty.
Captured::Captured(const Context& ctx)
    : ctx_(Device::cuda, ctx.device_index, ctx.arena.source(), ctx.host_arena.source(), ctx.threads,
           ctx.stream, ctx.handles) {}

void Captured::operator()(const std::function<void(Context&)>& work) {
    const bool first = !recorded_ && ctx_.arena.capacity() == 0;
    if (!recorded_) {
        const Arena::Scope scope(ctx_.arena);
        ctx_.arena.tensor(Dtype::u8, {1});  // joins the first run's blocks, which frees memory
    }
    const auto run = [&] {
        const Arena::Scope scope(ctx_.arena);
        work(ctx_);
    };
    if (first) return run();
    if (!recorded_) recorded_ = cuda_ops().capture(ctx_, run);
    cuda_ops().replay(ctx_, recorded_.get());
}

}  // namespace hark
