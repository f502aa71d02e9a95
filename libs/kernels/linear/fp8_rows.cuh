// The rows of x in e4m3, for products on the matrix units that take two factors of eight bits.
#pragma once

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// x = values * scale of the row, as quantize_fp8() rounds.
struct Fp8Rows {
    Tensor values;  // (T, K) fp8
    Tensor scales;  // (T) f32
};

// Whether products of x and w can be of e4m3: w is fp8 and x has 16 bits, K is a multiple of 16,
// both are aligned to 16 bytes, and the GPU has compute capability 9.0.
bool takes_fp8_rows(const Tensor& x, const Matrix& w);

// Whether to_fp8_rows() computes the norm too: of rows of up to 8192 values, rms_norm up to 4096.
bool norms_fp8_rows(const Tensor& x, const Norm& norm);

// x (T, K), normed if the norm has a weight, in e4m3, in memory of ctx.arena. The norm is rounded
// to x's type in between. Up to 1024 i32 of `zeros`, if there are any, become zero.
Fp8Rows to_fp8_rows(Context& ctx, const Tensor& x, const Norm& norm, const Tensor& zeros = {});

}  // namespace hark::cuda
