// The products that oneDNN computes; all that differs between its versions is in onednn.cc.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace hark::onednn {

// c (m, n) = a (m, k) b^T, or c += a b^T; b is stored (n, k). lda and ldc are the distances of
// rows. On `threads` OpenMP threads. Throws Error where oneDNN refuses.
void multiply(int threads, float* c, int64_t ldc, const float* a, int64_t lda, const float* b,
              int64_t m, int64_t n, int64_t k, bool accumulate);

// The same from bf16, summed in f32.
void multiply(int threads, float* c, int64_t ldc, const bf16_t* a, int64_t lda, const bf16_t* b,
              int64_t m, int64_t n, int64_t k);

// The same from s8, summed in s32: exact on processors with VNNI, which alone may call it.
void multiply(int threads, int32_t* c, int64_t ldc, const int8_t* a, int64_t lda, const int8_t* b,
              int64_t m, int64_t n, int64_t k);

}  // namespace hark::onednn
