// Sums of columns: over the partial sums that blocks have left, in one order.
#pragma once

#include "kernels/cuda_common.cuh"

namespace hark::cuda {

// to (columns) += the sum of `partial` (parts, stride) f32's columns from `first` on.
void add_partials(Context& ctx, Tensor to, Tensor partial, int64_t first);

// How many blocks of `threads` threads with at most 128 registers the GPU holds at once.
int64_t blocks_at_once(const Context& ctx, int64_t threads);

}  // namespace hark::cuda
