// The product behind linear and conv1d on the CPU.
#pragma once

#include "kernels/ops.h"

namespace hark {

// y (rows, N) = epilogue(x (rows, K) W^T); the epilogue's residual may be y. Arguments are checked
// by the callers. Up to kFewRows rows a row's bits do not depend on the others.
void cpu_product(Context& ctx, float* y, const float* x, int64_t rows, const Matrix& w,
                 const Epilogue& then);

constexpr int64_t kFewRows = 16;

}  // namespace hark
