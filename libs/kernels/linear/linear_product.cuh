// linear for many rows, by Hopper's own products (linear_wgmma.cu) or cuBLASLt.
#pragma once

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// y = epilogue(x W^T) for arguments that linear has checked. What cuBLASLt can fuse is fused: bias,
// a residual without an activation, GELU by tanh without a residual. The exact GELU without a
// residual is fused by wgmma_product where there is one; whatever else cuBLASLt cannot do is a pass
// over the product behind it. Weights of another type than x are converted to x's, block by block.
void many_rows(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then);

// to (rows, K) of a float type = from, times its row's scale where there are `scales`; from's
// values where it is quantised.
void convert(Context& ctx, Tensor to, Tensor from, const float* scales);

// True where wgmma_product multiplies many rows, whatever their number: on a GPU of compute
// capability 9.0, with the exact GELU and no residual (cuBLASLt fuses the others, and is as fast),
// x in 16 bits and aligned, y in x's type or f32.
bool has_wgmma_product(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then);

// Rows of the weights, from row `first` on, in the activations' type.
struct Block {
    Tensor values;
    int64_t first;
    bool uploaded;  // not by a kernel of this call
};

// The columns of y from w.first on = GELU(x W^T + bias); the bias is that of all of y. The GELU is
// computed in another way than `activate` does, within 3e-7 (f32).
void wgmma_product(Context& ctx, Tensor y, Tensor x, const Block& w, const Tensor& bias);

}  // namespace hark::cuda
