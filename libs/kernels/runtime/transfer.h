// Copies between the host and a context's device: ids and shapes to the device, results back. On
// the CPU nothing is copied.
#pragma once

#include <functional>

#include "core/context.h"
#include "kernels/ops.h"

namespace hark {

// A host tensor for the context's kernels: itself on the CPU, a copy in ctx.arena on a GPU. The
// host's memory can be reused at once; pinned memory, such as ctx.host_arena's, only after a later
// result has come back from the context's stream.
Tensor to_device(Context& ctx, const Tensor& host);
BatchLayout to_device(Context& ctx, const BatchLayout& host);

// Copies a host tensor to one of the context's device, of the same size and type. The host's memory
// can be reused as in to_device().
void copy_to_device(Context& ctx, const Tensor& to, const Tensor& host);

// Fills `to` with the values that `write` gives to a host tensor of its type and shape.
void fill_from_host(Context& ctx, const Tensor& to, const std::function<void(Tensor)>& write);

// A result on the host, complete: itself on the CPU, a copy in ctx.host_arena on a GPU.
Tensor to_host(Context& ctx, const Tensor& result);

// Copies bytes between the host and the context's memory. On a GPU in the order of its stream; what
// is read is there when the call returns, and what was written from can be reused as in
// to_device().
void read_bytes(Context& ctx, void* to_host, const void* from, size_t bytes);
void write_bytes(Context& ctx, void* to, const void* from_host, size_t bytes);

// Waits for the launches on a GPU. Errors of kernels are reported by the next call.
void wait_for(Context& ctx) noexcept;

// Frees all memory taken from both arenas of the context while it lives.
class Scratch {
  public:
    explicit Scratch(Context& ctx) : device_(ctx.arena), host_(ctx.host_arena) {}

  private:
    Arena::Scope device_, host_;
};

}  // namespace hark
