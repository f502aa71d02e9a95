// How fast this machine multiplies on its CPU.
#pragma once

#include "core/tensor.h"

namespace hark {

// GFLOP/s of oneDNN's product of 2048 rows and columns of f32, bf16 or i8 with `threads` threads;
// if the processor has no instructions for bf16 or i8, that of f32. Other types: that of f32.
double cpu_product_speed(int threads, Dtype dtype);

}  // namespace hark
