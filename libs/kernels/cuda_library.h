// libhark-cuda.so: all CUDA code of hark in one library, opened when a GPU is first asked for.
// No tool links CUDA, so the same tools run with and without a GPU, a driver or CUDA's libraries.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "kernels/ops.h"

namespace hark {

// What the library gives. linear and the rest are the device's side of ops.h.
struct CudaOps {
    // A context on GPU `index`, with its own stream. Throws Error where there is no driver, one too
    // old, no such device, or a device too old.
    Context (*make_context)(int index);
    // Copies to the context's GPU behind the work already on its stream; `from` may be used again
    // when it returns, and what is launched later finds the copy done.
    void (*upload)(Context& ctx, void* to, const void* from, size_t bytes);
    // Copies to the host behind the work already on the context's stream; done when it returns.
    void (*download)(Context& ctx, void* to, const void* from, size_t bytes);
    // Records what `work` launches on the context's stream, without running it: neither it may
    // allocate on the GPU nor wait. replay() launches it all at once, as often as is wanted.
    std::shared_ptr<void> (*capture)(Context& ctx, const std::function<void()>& work);
    void (*replay)(Context& ctx, void* graph);
    // Waits for the context's stream. Throws Error where a kernel has failed.
    void (*synchronize)(Context& ctx);

    void (*linear)(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then);
    void (*attention)(Context& ctx, Tensor out, Tensor q, Tensor keys, Tensor values,
                      const Ragged& rows, float scale, bool causal);
};

// Goes up whenever CudaOps or a type that it passes changes: a library of another build is refused.
inline constexpr int kCudaAbi = 2;

// The library's functions; opens it at the first call. Throws Error that says where it has been
// looked for, or why it cannot be loaded.
const CudaOps& cuda_ops();

// Another of the library's symbols, for kernels that belong to one model. Throws as cuda_ops().
void* cuda_symbol(const char* name);

}  // namespace hark
