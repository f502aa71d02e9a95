// How fast a GPU is: times of its work, and its own copy and product.
#pragma once

#include <functional>

#include "core/context.h"
#include "core/tensor.h"

namespace hark {

// Milliseconds of what `work` has the GPU do, the median of `runs` after one that warms up.
double gpu_ms(Context& ctx, int runs, const std::function<void()>& work);

// GB/s, read and written, of a copy of 1 GiB within the GPU's memory. Throws OutOfMemory without
// 2 GiB of free memory.
double gpu_copy_speed(Context& ctx);

// GFLOP/s of products of 8192 cubed, for about `seconds`. `meanwhile`, if given, is called once
// while the GPU computes more of them, which are not timed.
double gpu_product_speed(Context& ctx, Dtype dtype, double seconds = 0.2,
                         const std::function<void()>& meanwhile = nullptr);

// GB/s of copies of 64 MiB between the host's pinned memory and the GPU.
struct TransferSpeed {
    double to_gpu = 0, from_gpu = 0;
};
TransferSpeed gpu_transfer_speed(Context& ctx);

}  // namespace hark
