#include "kernels/runtime/transfer.h"

#include <cstring>
#include <vector>

#include "core/error.h"
#include "kernels/runtime/cuda_library.h"

namespace hark {
namespace {

Tensor like(Arena& arena, const Tensor& tensor) {
    Tensor copy = tensor;
    copy.data = arena.tensor(tensor.dtype, {tensor.size()}).data;
    copy.device = arena.source().device;
    return copy;
}

}  // namespace

Tensor to_device(Context& ctx, const Tensor& host) {
    if (!ctx.on_cuda()) return host;
    const Tensor copy = like(ctx.arena, host);
    cuda_runtime().upload(ctx, copy.data, host.data, host.bytes());
    return copy;
}

BatchLayout to_device(Context& ctx, const BatchLayout& host) {
    BatchLayout copy = host;
    for (Tensor* ids : {&copy.query_start, &copy.block_table, &copy.length})
        *ids = to_device(ctx, *ids);
    return copy;
}

void copy_to_device(Context& ctx, const Tensor& to, const Tensor& host) {
    require(to.dtype == host.dtype && to.size() == host.size() && host.device == Device::cpu,
            "copy_to_device: expected ", to, " on the host, found ", host);
    write_bytes(ctx, to.data, host.data, host.bytes());
}

void fill_from_host(Context& ctx, const Tensor& to, const std::function<void(Tensor)>& write) {
    if (!ctx.on_cuda()) return write(to);
    std::vector<std::byte> memory(to.bytes());
    Tensor host = to;
    host.data = memory.data();
    host.device = Device::cpu;
    write(host);
    copy_to_device(ctx, to, host);
}

Tensor to_host(Context& ctx, const Tensor& result) {
    if (!ctx.on_cuda()) return result;
    const Tensor copy = like(ctx.host_arena, result);
    cuda_runtime().download(ctx, copy.data, result.data, result.bytes());
    return copy;
}

void read_bytes(Context& ctx, void* to_host, const void* from, size_t bytes) {
    if (ctx.on_cuda()) return cuda_runtime().download(ctx, to_host, from, bytes);
    std::memcpy(to_host, from, bytes);
}

void write_bytes(Context& ctx, void* to, const void* from_host, size_t bytes) {
    if (ctx.on_cuda()) return cuda_runtime().upload(ctx, to, from_host, bytes);
    std::memcpy(to, from_host, bytes);
}

void wait_for(Context& ctx) noexcept {
    if (!ctx.on_cuda()) return;
    try {
        cuda_runtime().synchronize(ctx);
    } catch (const Error&) {
    }
}

}  // namespace hark
