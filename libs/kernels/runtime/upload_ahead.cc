#include "kernels/runtime/upload_ahead.h"

#include "core/error.h"
#include "kernels/runtime/cuda_library.h"

namespace hark {

UploadAhead::UploadAhead(const Context& ctx, int64_t bytes)
    : stream_(ctx.on_cuda() ? cuda_runtime().make_stream(ctx) : nullptr),
      side_(ctx.device, ctx.device_index, ctx.arena.source(), ctx.host_arena.source(), ctx.threads,
            stream_.get()),
      memory_(ctx.arena.source()) {
    if (!stream_) return;
    for (Tensor& buffer : buffers_) buffer = memory_.tensor(Dtype::u8, {bytes});
}

Tensor UploadAhead::operator()(Context& ctx, const Tensor& host) {
    if (!stream_) return host;
    const Tensor& buffer = buffers_[turn_];
    require(host.bytes() <= buffer.bytes(), "expected ", buffer.bytes(),
            " bytes at most to upload, found ", host.bytes());
    cuda_runtime().upload(side_, buffer.data, host.data, host.bytes());
    cuda_runtime().follow(ctx, ctx.stream, stream_.get());
    // The next copy overwrites what the launches so far may read.
    cuda_runtime().follow(ctx, stream_.get(), ctx.stream);
    turn_ = 1 - turn_;
    Tensor copy = host;
    copy.data = buffer.data;
    copy.device = Device::cuda;
    return copy;
}

}  // namespace hark
