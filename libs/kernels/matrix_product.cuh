// Products of matrices in any orientation, by cuBLASLt.
#pragma once

#include "kernels/cuda_common.cuh"

namespace hark::cuda {

// A matrix (rows, columns), or its transpose.
struct Factor {
    Tensor values;
    bool transposed = false;

    int64_t rows() const { return values.dim(transposed ? 1 : 0); }
    int64_t columns() const { return values.dim(transposed ? 0 : 1); }
};

// What a product takes beside its factors.
struct Addends {
    Tensor bias;   // (N) of d's type, or none
    Tensor added;  // as d, which it may be, or none
    float product_factor = 1, added_factor = 1;
};

// d (M, N) = product_factor a (M, K) b (K, N) + bias + added_factor added. a and b f32 or both
// bf16, d of their type or f32. Sums are f32, in an order that depends on shapes and types alone.
void multiply_matrices(Context& ctx, Tensor d, const Factor& a, const Factor& b,
                       const Addends& with);

}  // namespace hark::cuda
