// libhark-cuda.so: all CUDA code of hark in one library, opened at the first use of a GPU. No tool
// links CUDA: the same tools run with and without a GPU, a driver or CUDA's libraries.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/context.h"

namespace hark {

// The library's contexts, copies, graphs and streams; its operations are in kernels/ops_table.h.
struct CudaRuntime {
    // A context on GPU `index`, with its own stream; `threads` threads compute the host's part.
    // Throws Error if there is no driver or no such device, or if either is too old.
    Context (*make_context)(int index, int threads);
    // Copies to the context's GPU, in the order of its stream. `from` can be reused when this
    // returns; pinned memory only once the stream has reached the copy.
    void (*upload)(Context& ctx, void* to, const void* from, size_t bytes);
    // Copies to the host, in the order of the context's stream; done when it returns.
    void (*download)(Context& ctx, void* to, const void* from, size_t bytes);
    // Records the launches of `work` on the context's stream without running them. `work` must
    // neither allocate on the GPU nor synchronise. replay() launches the recording, any number of
    // times.
    std::shared_ptr<void> (*capture)(Context& ctx, const std::function<void()>& work);
    void (*replay)(Context& ctx, void* graph);
    // Another stream of the context's GPU, of higher priority than the context's own.
    std::shared_ptr<void> (*make_stream)(const Context& ctx);
    // Later launches on stream `later` start after all launches so far on `earlier`. If `earlier`
    // is being recorded, `later` becomes part of the recording.
    void (*follow)(Context& ctx, void* later, void* earlier);
    // Free bytes of the context's GPU.
    size_t (*free_memory)(const Context& ctx);
    // Of GPU `index`: 90 for 9.0; 0 if there is none.
    int (*compute_capability)(int index);
    // Waits for the context's stream. Throws Error if a kernel has failed.
    void (*synchronize)(Context& ctx);
};

// The library's functions; the first call opens it. Throws Error that says where it was looked for,
// or why it cannot be loaded.
const CudaRuntime& cuda_runtime();

// Whether the library is installed; it is not opened.
bool cuda_library_is_there();

// Another symbol of the library. Throws as cuda_runtime() does.
void* cuda_symbol(const char* name);

}  // namespace hark
