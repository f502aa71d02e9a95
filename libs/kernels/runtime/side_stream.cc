#include "kernels/runtime/side_stream.h"

#include "kernels/runtime/cuda_library.h"

namespace hark {

SideStream::SideStream(const Context& ctx)
    : stream_(ctx.on_cuda() ? cuda_runtime().make_stream(ctx) : nullptr),
      side_(ctx.device, ctx.device_index, ctx.arena.source(), ctx.host_arena.source(), ctx.threads,
            stream_.get()) {}

void SideStream::run(Context& ctx, const std::function<void(Context&)>& work) {
    if (stream_) cuda_runtime().follow(ctx, side_.stream, ctx.stream);
    forked_ = true;
    work(stream_ ? side_ : ctx);
}

void SideStream::join(Context& ctx) {
    if (stream_ && forked_) cuda_runtime().follow(ctx, ctx.stream, side_.stream);
    forked_ = false;
}

}  // namespace hark
