// The loops for processors with AVX-512 (F, BW, DQ, VL); compiled with their flags.
#include <immintrin.h>
#include <algorithm>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "kernels/quant/block_types.h"

namespace hark {
namespace {

struct Vec {
    using F = __m512;
    static constexpr int kWidth = 16;
    static constexpr int kRowsAtOnce = 4;  // of x
    static constexpr int kWeightRows = 2;  // with them: 16 of 32 registers hold sums
    static constexpr int kPanelVectors = 4, kPanelRows = 6;

    static F set(float x) { return _mm512_set1_ps(x); }
    static F load(const float* p) { return _mm512_loadu_ps(p); }
    static F load(const f16_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static F load(const bf16_t* p) {
        const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
    }
    static F load(const int8_t* p) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
    }
    // Bytes as 32-bit integers, one per lane.
    using Lanes = int32_t __attribute__((vector_size(64)));
    static Lanes lanes(const uint8_t* p) {
        return Lanes(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static Lanes lanes(const int8_t* p) {
        return Lanes(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static F quants(Lanes x) { return _mm512_cvtepi32_ps(__m512i(x)); }
    // Bytes as 16-bit integers; four bits, and the fifth bit times 16, of a block of 32 values.
    using Shorts = int16_t __attribute__((vector_size(64)));
    static Shorts shorts(const uint8_t* p) {
        return Shorts(
            _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
    }
    static Shorts shorts(const int8_t* p) {
        return Shorts(
            _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
    }
    static Shorts shorts(const int16_t* p) { return Shorts(_mm512_loadu_si512(p)); }
    static void store(int16_t* p, Shorts x) { _mm512_storeu_si512(p, __m512i(x)); }
    static Shorts four_bits(const uint8_t* p, int, int) {
        const __m256i twice =
            _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
        const __m512i by = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(4), 1);
        return Shorts(_mm512_srlv_epi16(_mm512_cvtepu8_epi16(twice), by)) & int16_t{15};
    }
    static Shorts fifth_bit(const uint8_t* p, int, int) {
        uint32_t bits;
        __builtin_memcpy(&bits, p, 4);
        return Shorts(_mm512_maskz_set1_epi16(bits, 16));
    }
    // The numbers in places x, from 0 to 15, of the table of bytes with their sign {lower, upper}.
    template <class Places>
    static Places lookup(uint64_t lower, uint64_t upper, Places x) {
        const auto a = static_cast<int64_t>(lower), b = static_cast<int64_t>(upper);
        const __m512i table = _mm512_broadcast_i32x4(_mm_set_epi64x(b, a));
        constexpr int kShift = sizeof(x[0]) * 8 - 8;
        return Places(_mm512_shuffle_epi8(table, __m512i(x))) << kShift >> kShift;
    }
    static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
    static void store(f16_t* p, F x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                            _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    static void store(bf16_t* p, F x) {
        const __m512i bits = _mm512_castps_si512(x);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        const __m512i rounded = _mm512_srli_epi32(
            _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
        const __m512i quiet =  // NaN stays NaN
            _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
        const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        const __m512i high = _mm512_mask_mov_epi32(rounded, is_nan, quiet);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(high));
    }
    static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
    static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static F add(F a, F b) { return _mm512_add_ps(a, b); }
    static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
    static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
    static F div(F a, F b) { return _mm512_div_ps(a, b); }
    // An estimate of 14 bits and a Newton step: a division takes as long as the rest of gelu.
    static F reciprocal(F x) {
        const F r = _mm512_rcp14_ps(x);
        return _mm512_mul_ps(r, _mm512_fnmadd_ps(x, r, set(2.0f)));
    }
    static F sqrt(F x) { return _mm512_sqrt_ps(x); }
    static F min(F a, F b) { return _mm512_min_ps(a, b); }
    static F max(F a, F b) { return _mm512_max_ps(a, b); }
    static F round(F x) {
        return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    static F where_below(F x, F limit, F below, F other) {
        return _mm512_mask_mov_ps(other, _mm512_cmp_ps_mask(x, limit, _CMP_LT_OQ), below);
    }
    static F power_of_2(F n) {
        const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
        return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
    }
    // Products of 16-bit integers, summed in 32 bits.
    using I = __m512i;
    static constexpr int kIntegers = 32;
    static I zero_integers() { return _mm512_setzero_si512(); }
    static I integers(Shorts x) { return I(x); }
    static I load_integers(const int16_t* p) { return _mm512_loadu_si512(p); }
    static I load_integers(const int8_t* p) {
        return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static I multiply_add(I a, I b, I sums) {
        return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b));
    }
    static F to_floats(I x) { return _mm512_cvtepi32_ps(x); }
    // of(i) in the lanes of the i-th group of `shared` 16-bit integers.
    template <int shared, class Of>
    static F scales(const Of& of) {
        if constexpr (shared >= kIntegers)
            return set(of(0));
        else
            return _mm512_mask_mov_ps(set(of(0)), 0xff00, set(of(1)));
    }
    // {a0, b0, a1, b1, ...}: the lower half of it, and the upper one.
    static void interleave(F a, F b, F& lower, F& upper) {
        const __m512i places =
            _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        lower = _mm512_permutex2var_ps(a, places, b);
        upper = _mm512_permutex2var_ps(a, _mm512_add_epi32(places, _mm512_set1_epi32(8)), b);
    }
    static int32_t total(I x) { return _mm512_reduce_add_epi32(x); }
    static float first(F x) { return _mm512_cvtss_f32(x); }
    static float total(F x) { return _mm512_reduce_add_ps(x); }
    static float maximum(F x) { return _mm512_reduce_max_ps(x); }
};

constexpr const char* kKernelsName = "avx512";

#include "kernels/cpu/store_eight.h"
#include "kernels/cpu/table.h"

}  // namespace

extern const CpuKernels kAvx512Kernels;
const CpuKernels kAvx512Kernels = kTable;

}  // namespace hark
