// For processors with AVX-512; each file that includes it compiles it with its own flags, so the
// name is local to the file.
#pragma once

#include <immintrin.h>

namespace hark {
namespace {

// Transposes 16 rows of 16 numbers.
inline void transpose(__m512i (&r)[16]) {
    __m512i t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        const int first = i / 4 * 4 + i % 4 / 2, to = i / 4 * 4 + i % 4;
        r[to] = _mm512_unpacklo_epi64(t[first], t[first + 2]);
        r[to + 1] = _mm512_unpackhi_epi64(t[first], t[first + 2]);
    }
    // Part p of vector 4 i + j is column 4 p + j of rows 4 i to 4 i + 3.
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
        const __m512i a = _mm512_shuffle_i32x4(r[j], r[4 + j], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0x88);
        const __m512i c = _mm512_shuffle_i32x4(r[j], r[4 + j], 0xdd);
        const __m512i d = _mm512_shuffle_i32x4(r[8 + j], r[12 + j], 0xdd);
        t[j] = _mm512_shuffle_i32x4(a, b, 0x88);
        t[8 + j] = _mm512_shuffle_i32x4(a, b, 0xdd);
        t[4 + j] = _mm512_shuffle_i32x4(c, d, 0x88);
        t[12 + j] = _mm512_shuffle_i32x4(c, d, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = t[i];
}

}  // namespace
}  // namespace hark
