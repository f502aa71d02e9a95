// The product that linear and conv1d share on the CPU, and those of the gradients.
#pragma once

#include "kernels/ops.h"

namespace hark {

// y (rows, N) = epilogue(x (rows, K) W^T). The residual may be y. The callers check the arguments.
// Up to kFewRowsOnCpu rows, a row's bits do not depend on the other rows.
void cpu_product(Context& ctx, float* y, const float* x, int64_t rows, const Matrix& w,
                 const Epilogue& then);

// y (rows, N / 2) = activation(first half) * second half of x (rows, K) W^T + bias; no residual.
void cpu_gated_product(Context& ctx, float* y, const float* x, int64_t rows, const Matrix& w,
                       const Epilogue& then);

// dx (rows, K) = dy (rows, N) W
void cpu_product_backward(Context& ctx, float* dx, const float* dy, int64_t rows, const Matrix& w);

// sums (N) += the rows of x (rows, N), in their order
void cpu_add_rows(Context& ctx, float* sums, const float* x, int64_t rows, int64_t n_size);

}  // namespace hark
