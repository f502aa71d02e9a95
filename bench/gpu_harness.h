// What measurements on a GPU share: times, and the card's own speed in the same run.
#pragma once

#include <functional>

#include "core/context.h"
#include "core/tensor.h"

namespace hark::bench {

// Milliseconds of what `work` has the GPU do, the median of `runs` behind one that warms up.
double gpu_ms(Context& ctx, int runs, const std::function<void()>& work);

// GB/s, read and written, of a copy of 1 GiB.
double copy_speed(Context& ctx);

// GFLOP/s of a product of 8192 cubed.
double product_speed(Context& ctx, Dtype dtype);

}  // namespace hark::bench
