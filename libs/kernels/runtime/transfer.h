// What crosses between the host and a context's device: ids and shapes go up, results come down.
// On the CPU nothing is copied.
#pragma once

#include <functional>

#include "core/context.h"
#include "kernels/ops.h"

namespace hark {

// A tensor of the host, as the context's kernels take it: itself on the CPU, a copy in ctx.arena on
// a GPU. The host's memory may be used again at once; pinned memory, as ctx.host_arena's, once
// something has come back from the context's stream.
Tensor to_device(Context& ctx, const Tensor& host);
BatchLayout to_device(Context& ctx, const BatchLayout& host);

// Copies a tensor of the host to one of the context's device, of the same size and type. The host's
// memory may be used again as to_device() says.
void copy_to_device(Context& ctx, const Tensor& to, const Tensor& host);

// Gives `to` the values that `write` gives to a tensor of its type and shape on the host.
void fill_from_host(Context& ctx, const Tensor& to, const std::function<void(Tensor)>& write);

// A result on the host, complete: itself on the CPU, a copy in ctx.host_arena on a GPU.
Tensor to_host(Context& ctx, const Tensor& result);

// Waits for what has been launched on a GPU; what failed there is told by the next call.
void wait_for(Context& ctx) noexcept;

// What both arenas of the context hand out while a Scratch lives is given back when it dies.
class Scratch {
  public:
    explicit Scratch(Context& ctx) : device_(ctx.arena), host_(ctx.host_arena) {}

  private:
    Arena::Scope device_, host_;
};

}  // namespace hark
