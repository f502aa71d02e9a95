// Copies from the host's memory to the GPU's.
#pragma once

#include <cstddef>

namespace hark::cuda {

// Copies `bytes` bytes to memory of any GPU, which becomes the thread's current one; done when it
// returns or throws. Any threads may call it: each copy has a stream and 1 MB of pinned memory of
// its own while it lasts, at most 32 MB per GPU together; another one waits. A thread's copy of
// more than that fills the memory and waits for the GPU in turn, so large copies are several
// threads'.
void write_gpu_memory(void* to, const void* from, size_t bytes);

}  // namespace hark::cuda
