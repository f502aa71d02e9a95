// The products that oneDNN computes. Differences between oneDNN's versions are in onednn.cc only.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace hark::onednn {

// A matrix in memory, or the transpose of one; `stride` is the distance between its rows.
struct Factor {
    const float* values;
    int64_t stride;
    bool transposed = false;
};

// c (m, n) = a (m, k) b (k, n), or c += a b; ldc is the distance between c's rows. Uses `threads`
// OpenMP threads, or one if called in a parallel region. Throws Error if oneDNN refuses.
void multiply(int threads, float* c, int64_t ldc, const Factor& a, const Factor& b, int64_t m,
              int64_t n, int64_t k, bool accumulate);

// c (m, n) = a (m, k) b^T from bf16, summed in f32; b is stored (n, k).
void multiply(int threads, float* c, int64_t ldc, const bf16_t* a, int64_t lda, const bf16_t* b,
              int64_t m, int64_t n, int64_t k);

// The same from s8, summed in s32. Exact on processors with VNNI; call it only on those.
void multiply(int threads, int32_t* c, int64_t ldc, const int8_t* a, int64_t lda, const int8_t* b,
              int64_t m, int64_t n, int64_t k);

}  // namespace hark::onednn
