// Integers of bytes as floats, on processors with AVX2. g++ 12 converts a plain loop, and
// __builtin_convertvector, one byte after another.
#pragma once

static inline void store_eight(float* to, __m256i from, float unit) {
    _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_cvtepi32_ps(from), _mm256_set1_ps(unit)));
}

// Eight integers times `unit`.
static inline void store_eight(float* to, const uint8_t* from, float unit) {
    store_eight(to, _mm256_cvtepu8_epi32(_mm_loadu_si64(from)), unit);
}
static inline void store_eight(float* to, const int8_t* from, float unit) {
    store_eight(to, _mm256_cvtepi8_epi32(_mm_loadu_si64(from)), unit);
}
