// Products of matrices in any orientation, by cuBLASLt.
#pragma once

#include "kernels/cuda/cuda_common.cuh"

namespace hark::cuda {

// A matrix (rows, columns), or its transpose.
struct Factor {
    Tensor values;
    bool transposed = false;

    int64_t rows() const { return values.dim(transposed ? 1 : 0); }
    int64_t columns() const { return values.dim(transposed ? 0 : 1); }
};

// The fused epilogue of a product: p = product_factor a b + bias + added_factor added.
struct Finish {
    Tensor bias;   // (N) of d's type, or none
    Tensor added;  // as d, or none; may be d itself
    float product_factor = 1, added_factor = 1;
    // none: d = p. value: d = GELU by tanh of p, and gelu_input = p is written. slope: d = p times
    // the slope of that GELU at gelu_input. value and slope need bf16 and rows of a multiple of 16
    // bytes.
    enum class Gelu { none, value, slope } gelu = Gelu::none;
    Tensor gelu_input;  // as d
};

// d (M, N) = finish(a (M, K) b (K, N)). a and b are both f32 or both bf16, d of their type or f32.
// Sums are f32, in an order that depends on shapes and types only. The first bf16 product of a
// shape that does not add to d takes longer: it tries the algorithms that give the same bits.
void multiply_matrices(Context& ctx, Tensor d, const Factor& a, const Factor& b,
                       const Finish& finish);

}  // namespace hark::cuda
