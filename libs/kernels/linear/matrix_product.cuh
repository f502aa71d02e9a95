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

// What is fused behind a product p = product_factor a b + bias + added_factor added.
struct Finish {
    Tensor bias;   // (N) of d's type, or none
    Tensor added;  // as d, which it may be, or none
    float product_factor = 1, added_factor = 1;
    // d = p; GELU by tanh with `gelu_input` = p written; or p times that GELU's slope at
    // `gelu_input`. Both of bf16 alone, whose rows are 16 bytes or a multiple.
    enum class Gelu { none, value, slope } gelu = Gelu::none;
    Tensor gelu_input;  // as d
};

// d (M, N) = finish(a (M, K) b (K, N)). a and b f32 or both bf16, d of their type or f32. Sums are
// f32, in an order that depends on shapes and types alone. Of bf16 products the first of a shape
// that does not add to d itself takes some time: it tries the algorithms that give the same bits.
void multiply_matrices(Context& ctx, Tensor d, const Factor& a, const Factor& b,
                       const Finish& finish);

}  // namespace hark::cuda
