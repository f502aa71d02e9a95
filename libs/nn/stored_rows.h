// Rows of matrices as files store them, as floats.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace hark {

inline constexpr int64_t kRowsAtOnce = 64;

// Reads rows [first, first + count) of a matrix (N, K), (count, K).
void widen_rows(float* to, const Tensor& stored, int64_t first, int64_t count);

// Reads columns [first, first + count) of a matrix (K, N) of f32, f16 or bf16, as rows (count, K);
// count <= kRowsAtOnce.
void widen_columns(float* rows, const Tensor& stored, int64_t first, int64_t count);

// The numbers of a quantised matrix, in memory of `owner`.
Tensor widened_copy(const Tensor& stored, std::vector<std::vector<float>>& owner);

}  // namespace hark
