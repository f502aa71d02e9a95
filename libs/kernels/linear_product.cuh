// linear for many rows, by cuBLASLt.
#pragma once

#include "kernels/cuda_common.cuh"

namespace hark::cuda {

// y = epilogue(x W^T) for arguments that linear has checked. What cuBLASLt can fuse is fused: bias,
// a residual without an activation, GELU by tanh without a residual. Its GELU is the tanh form
// alone, so the exact one, and whatever else it cannot do, is a pass over the product behind it.
// Weights of another type than x are converted to x's, block by block.
void many_rows(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then);

}  // namespace hark::cuda
