// linear for many rows: Hopper's own products (gemm_wgmma.cu) or cuBLASLt.
#pragma once

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// Weights that are converted at a time. Fewer would stay in the L2 cache, but their products fill
// the GPU less well (docs/kernels/linear.md).
inline constexpr int64_t kConvertedElements = int64_t{64} << 20;

// y = epilogue(x W^T); linear has checked the arguments. cuBLASLt fuses a bias, a residual without
// an activation, or GELU by tanh without a residual. wgmma_product, if available, fuses the exact
// GELU without a residual. Any other epilogue is a second pass over the product. Weights of another
// type than x are converted to x's type, block by block; but fp8 is multiplied by x's rows in e4m3,
// with f32 sums, by wgmma or cuBLASLt.
// norm: of x first, or none; only if rounds_x() and norms_fp8_rows().
void gemm(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
          const Norm& norm);

// Whether gemm() rounds the rows of x to e4m3.
bool rounds_x(const Tensor& x, const Matrix& w, const Epilogue& then);

// to (rows, K) of a float type = from, times the row's scale if there are `scales`; quantised
// values are dequantised.
void convert(Context& ctx, Tensor to, Tensor from, const float* scales);

// Whether wgmma_product multiplies many rows, for any number of them: compute capability 9.0, the
// exact GELU without a residual (cuBLASLt fuses the others and is as fast), x in 16 bits and
// aligned, y in x's type or f32.
bool has_wgmma_product(const Tensor& y, const Tensor& x, const Matrix& w, const Epilogue& then);

// Rows of the weights from row `first`, in the activations' type.
struct Block {
    Tensor values;
    int64_t first;
    bool uploaded;  // not written by a kernel of this call
};

// The columns of y from w.first = GELU(x W^T + bias); `bias` is that of all of y. The GELU is
// computed in another way than by `activate`, within 3e-7 (f32).
void wgmma_product(Context& ctx, Tensor y, Tensor x, const Block& w, const Tensor& bias);

// Whether fp8_wgmma_product multiplies many rows, for any number of them: takes_fp8_rows(), and the
// exact GELU or no activation.
bool has_fp8_wgmma_product(const Tensor& x, const Matrix& w, const Epilogue& then);

// y = epilogue(x W^T) of x's rows in e4m3, which are normed first if there is a norm.
void fp8_wgmma_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                       const Norm& norm);

// Whether gemm() multiplies e4m3 by cuBLASLt, any number of rows: takes_fp8_rows(), and N is a
// multiple of 16.
bool multiplies_fp8(const Tensor& x, const Matrix& w);

}  // namespace hark::cuda
