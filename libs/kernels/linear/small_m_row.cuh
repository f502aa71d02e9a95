// linear of one row and weights of its 16-bit type (small_m_row.cu). The same bits as
// sliced_kernel's.
#pragma once

#include "kernels/linear/small_m_mma.cuh"

namespace hark::cuda {

// Loads 16 bytes that are read once, without filling the L1 cache.
__device__ inline uint4 load_once(const void* from) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

// The same for loads that are to be requested before pdl_wait(): ptxas may move ld.global.nc to
// after it.
__device__ inline uint4 load_once_early(const void* from) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

// Whether one_row_product takes the operands; it may be gated, and appends nothing.
bool takes_one_row(const Tensor& x, const Matrix& w);
// Whether it computes the rms_norm of x too.
bool norms_one_row(const Tensor& x, const Matrix& w, const Norm& norm);
// Whether small_m_quantized computes the rms_norm of one row.
bool norms_quantized_row(const Context& ctx, const Tensor& x, const Matrix& w, const Norm& norm,
                         bool gated);
void one_row_product(Context& ctx, const SmallMArgs& args, const Tensor& x, const Tensor& w);

}  // namespace hark::cuda
