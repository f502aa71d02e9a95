// libhark-cuda.so: all CUDA code of hark in one library, opened when a GPU is first asked for.
// No tool links CUDA, so the same tools run with and without a GPU, a driver or CUDA's libraries.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "kernels/ops.h"

namespace hark {

// What the library gives.
struct CudaOps {
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

    // The device's side of ops.h, whose functions have checked the arguments.
    decltype(&hark::linear) linear;
    decltype(&hark::conv1d) conv1d;
    decltype(&hark::layer_norm) layer_norm;
    decltype(&hark::embedding) embedding;
    decltype(&hark::add_positions) add_positions;
    decltype(&hark::select_rows) select_rows;
    decltype(&hark::append_cache) append_cache;
    decltype(&hark::copy_cache) copy_cache;
    decltype(&hark::attention) attention;
    decltype(&hark::attention_scores) attention_scores;
    decltype(&hark::folded_attention) folded_attention;
};

// Goes up whenever CudaOps, CudaGradients, whisper's CudaChoose, gpt's CudaSampler or a type that
// they pass changes: a library of another build is refused.
inline constexpr int kCudaAbi = 11;

// The library's functions; opens it at the first call. Throws Error that says where it has been
// looked for, or why it cannot be loaded.
const CudaOps& cuda_ops();

// Another of the library's symbols, for kernels that belong to one model. Throws as cuda_ops().
void* cuda_symbol(const char* name);

}  // namespace hark
