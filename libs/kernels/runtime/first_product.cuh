// The first product of a process, ahead of its need.
#pragma once

#include <thread>

#include "core/context.h"

namespace hark::cuda {

// Returns a thread that multiplies two matrices on GPU `index` in a context by `make_context`, the
// next time for that GPU one that has ended. cuBLASLt's first product takes 0.14 s, the next ones
// up to 5 ms (docs/performance.md): a tool reads its model meanwhile. If this product fails, the
// tool's own says why.
std::jthread first_product(int index, Context (*make_context)(int index, int threads));

}  // namespace hark::cuda
