// linear of some dozens of rows of 16 bits by many outputs on Hopper (medium_m_wgmma.cu).
#pragma once

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// Whether medium_m_product multiplies these: 33 to 64 rows, 128 if gated, by many outputs, x and
// weights of one 16-bit type, y in x's type or f32, no residual, pointers aligned to 16 bytes, and
// a GPU that runs code for compute capability 9.0.
bool has_medium_m_product(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then,
                          bool gated);

// y = epilogue(x W^T), all of it fused; gated as LinearFusion says. A row's bits do not depend on
// the other rows, but are not those of other numbers of rows.
void medium_m_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                      bool gated);

}  // namespace hark::cuda
