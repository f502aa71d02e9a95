// Copies from the host's memory to the GPU's.
#pragma once

#include <cstddef>

namespace hark::cuda {

// Copies `bytes` bytes to memory of GPU `index`, which becomes the thread's current GPU. Done when
// it returns or throws. Any threads may call it; up to 32 copies per GPU run at once, each with a
// stream and 1 MB of pinned memory of its own. A thread fills this memory and waits for the GPU in
// turn, so a large copy is quicker if several threads share it.
void write_gpu_memory(int index, void* to, const void* from, size_t bytes);

}  // namespace hark::cuda
