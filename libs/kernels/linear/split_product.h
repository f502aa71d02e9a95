// Products of many rows in bf16 parts, on the CPU. The arguments are those of cpu_product().
#pragma once

#include "kernels/linear/pieces.h"

namespace hark {

// Any number of rows, on processors that have the kernels (cpu.h); weights of any type but i8 and
// fp8.
void split_product(Context& ctx, float* y, const float* x, int64_t t_size, const Matrix& w,
                   const EpiloguePointers& then);

}  // namespace hark
