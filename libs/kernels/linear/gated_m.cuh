// Gate and up of 192 to 256 rows on Hopper, one product with the activation fused
// (gated_m_wgmma.cu).
#pragma once

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// Whether gated_m_product multiplies these: 192 to 256 rows of 2048 columns and more, outputs that
// fill the multiprocessors, weights and y of x's 16-bit type, SiLU or GELU by tanh without a bias,
// pointers aligned to 16 bytes, and a GPU that runs code for compute capability 9.0.
bool has_gated_m_product(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then);

// y (T, n) = activation(g) * u with (g, u) = x W^T rounded to y's type, W (2 n, K). Each sum takes
// the columns in order.
void gated_m_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, Activation activation);

}  // namespace hark::cuda
