// libhark-cuda.so: all CUDA code of hark in one library, opened when a GPU is first asked for.
// No tool links CUDA, so the same tools run with and without a GPU, a driver or CUDA's libraries.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/context.h"

namespace hark {

// The library's contexts, copies, graphs and streams; its operations are in kernels/ops_table.h.
struct CudaRuntime {
    // A context on GPU `index`, with its own stream; `threads` are for what the host computes.
    // Throws Error where there is no driver, one too old, no such device, or a device too old.
    Context (*make_context)(int index, int threads);
    // Copies to the context's GPU behind the work already on its stream; what is launched later
    // finds the copy done. `from` may be used again when it returns, or where it is pinned, once
    // the stream has come so far.
    void (*upload)(Context& ctx, void* to, const void* from, size_t bytes);
    // Copies to the host behind the work already on the context's stream; done when it returns.
    void (*download)(Context& ctx, void* to, const void* from, size_t bytes);
    // Records what `work` launches on the context's stream, without running it: neither it may
    // allocate on the GPU nor wait. replay() launches it all at once, as often as is wanted.
    std::shared_ptr<void> (*capture)(Context& ctx, const std::function<void()>& work);
    void (*replay)(Context& ctx, void* graph);
    // Another stream of the context's GPU, whose kernels come before those of the context's own.
    std::shared_ptr<void> (*make_stream)(const Context& ctx);
    // What is launched on stream `later` from now on begins behind all that is on `earlier` so far;
    // in a recording of the one, the other belongs to it.
    void (*follow)(Context& ctx, void* later, void* earlier);
    // Bytes of the context's GPU that are free.
    size_t (*free_memory)(const Context& ctx);
    // Waits for the context's stream. Throws Error where a kernel has failed.
    void (*synchronize)(Context& ctx);
};

// The library's functions; opens it at the first call. Throws Error that says where it has been
// looked for, or why it cannot be loaded.
const CudaRuntime& cuda_runtime();

// Another of the library's symbols. Throws as cuda_runtime().
void* cuda_symbol(const char* name);

}  // namespace hark
