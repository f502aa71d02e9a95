// linear of some dozens of rows on Hopper whose weights the blocks share equally
// (streamed_m_wgmma.cu).
#pragma once

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// Whether streamed_m_product multiplies these: 33 to 128 rows in 16 bits by weights of e4m3, y in
// x's type or f32, pointers aligned to 16 bytes, and a GPU that runs code for compute capability
// 9.0.
bool has_streamed_m_product(const Tensor& y, const Tensor& x, const Matrix& w,
                            const Epilogue& then);

// y = epilogue(norm(x) W^T), all of it fused; gated as LinearFusion says. Sums depend on the number
// of rows and of multiprocessors alone.
void streamed_m_product(Context& ctx, Tensor y, Tensor x, const Matrix& w, const Epilogue& then,
                        const Norm& norm, bool gated);

}  // namespace hark::cuda
