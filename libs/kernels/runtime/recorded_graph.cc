#include "kernels/runtime/recorded_graph.h"

#include "kernels/runtime/cuda_library.h"

namespace hark {

// No stage is timed while recording: on_stage stays empty.
GraphScratch::GraphScratch(const Context& ctx)
    : ctx_(Device::cuda, ctx.device_index, ctx.arena.source(), ctx.host_arena.source(), ctx.threads,
           ctx.stream, ctx.handles) {
    ctx_.batch_invariant = ctx.batch_invariant;
}

// The first allocation from an empty arena joins its blocks.
const void* GraphScratch::begin() {
    const Arena::Scope scope(ctx_.arena);
    return ctx_.arena.tensor(Dtype::u8, {1}).data;
}

void RecordedGraph::operator()(const std::function<void(Context&)>& work) {
    const void* begin = scratch_.begin();
    if (begin != begin_) recorded_ = nullptr;
    // No memory was left while the scratch was being moved: all of it is lost.
    if (scratch_.capacity() < capacity_) recorded_ = nullptr, has_run_ = false;
    Context& ctx = scratch_.context();
    const auto run = [&] {
        const Arena::Scope scope(ctx.arena);
        work(ctx);
    };
    if (!has_run_) {
        run();
        has_run_ = true;
        return;
    }
    if (!recorded_) {
        recorded_ = cuda_runtime().capture(ctx, run);
        begin_ = begin;
        capacity_ = scratch_.capacity();
    }
    cuda_runtime().replay(ctx, recorded_.get());
}

}  // namespace hark
