// The products that oneDNN computes; all that differs between its versions is in onednn.cc.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace hark::onednn {

// A matrix in memory, or the transpose of one; `stride` is the distance of its rows there.
struct Factor {
    const float* values;
    int64_t stride;
    bool transposed = false;
};

// c (m, n) = a (m, k) b (k, n), or c += a b; ldc is the distance of c's rows. On `threads` OpenMP
// threads, one where it is called by threads of a parallel region. Throws Error where oneDNN
// refuses.
void multiply(int threads, float* c, int64_t ldc, const Factor& a, const Factor& b, int64_t m,
              int64_t n, int64_t k, bool accumulate);

// c (m, n) = a (m, k) b^T from bf16, summed in f32; b is stored (n, k).
void multiply(int threads, float* c, int64_t ldc, const bf16_t* a, int64_t lda, const bf16_t* b,
              int64_t m, int64_t n, int64_t k);

// The same from s8, summed in s32: exact on processors with VNNI, which alone may call it.
void multiply(int threads, int32_t* c, int64_t ldc, const int8_t* a, int64_t lda, const int8_t* b,
              int64_t m, int64_t n, int64_t k);

}  // namespace hark::onednn
