// Copies from the host's memory to the GPU's.
#pragma once

#include <cstddef>

namespace hark::cuda {

// Copies `bytes` bytes; done when it returns. Large copies go through pinned memory: several threads
// fill a buffer, from a mapped file for example, while the GPU reads the one before.
void write_gpu_memory(void* to, const void* from, size_t bytes);

}  // namespace hark::cuda
