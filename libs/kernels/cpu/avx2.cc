// The loops for processors with AVX2, FMA and F16C; compiled with their flags.
#include <immintrin.h>
#include <algorithm>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "kernels/quant/block_types.h"

namespace hark {
namespace {

struct Vec {
    using F = __m256;
    static constexpr int kWidth = 8;
    static constexpr int kRowsAtOnce = 3;  // of x
    static constexpr int kWeightRows = 2;  // with them: 12 of 16 registers hold sums
    static constexpr int kPanelVectors = 2, kPanelRows = 6;

    static F set(float x) { return _mm256_set1_ps(x); }
    static F load(const float* p) { return _mm256_loadu_ps(p); }
    static F load(const f16_t* p) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static F load(const bf16_t* p) {
        const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
    }
    static F load(const int8_t* p) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    }
    // Bytes as 32-bit integers, one per lane.
    using Lanes = int32_t __attribute__((vector_size(32)));
    static Lanes lanes(const uint8_t* p) {
        return Lanes(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
    }
    static Lanes lanes(const int8_t* p) {
        return Lanes(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
    }
    static F quants(Lanes x) { return _mm256_cvtepi32_ps(__m256i(x)); }
    // Bytes as 16-bit integers; four bits, and the fifth bit times 16, of group g of a block of 32
    // values.
    using Shorts = int16_t __attribute__((vector_size(32)));
    static Shorts shorts(const uint8_t* p) {
        return Shorts(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static Shorts shorts(const int8_t* p) {
        return Shorts(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static Shorts shorts(const int16_t* p) {
        return Shorts(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static void store(int16_t* p, Shorts x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), __m256i(x));
    }
    static Shorts four_bits(const uint8_t* p, int g, int) {
        return shorts(p) >> static_cast<int16_t>(g * 4) & int16_t{15};
    }
    static Shorts fifth_bit(const uint8_t* p, int g, int) {
        const __m256i places = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048,
                                                 4096, 8192, 16384, static_cast<int16_t>(32768));
        int16_t bits;
        __builtin_memcpy(&bits, p + g * 2, 2);
        const __m256i set =
            _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(bits), places), places);
        return Shorts(_mm256_and_si256(set, _mm256_set1_epi16(16)));
    }
    // The numbers in places x, from 0 to 15, of the table of bytes with their sign {lower, upper}.
    template <class Places>
    static Places lookup(uint64_t lower, uint64_t upper, Places x) {
        const auto a = static_cast<int64_t>(lower), b = static_cast<int64_t>(upper);
        const __m256i table = _mm256_setr_epi64x(a, b, a, b);
        constexpr int kShift = sizeof(x[0]) * 8 - 8;
        return Places(_mm256_shuffle_epi8(table, __m256i(x))) << kShift >> kShift;
    }
    static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
    static void store(f16_t* p, F x) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                         _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    static void store(bf16_t* p, F x) {
        const __m256i bits = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i rounded = _mm256_srli_epi32(
            _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
        const __m256i quiet =  // NaN stays NaN
            _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
        const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
        const __m256i high = _mm256_blendv_epi8(rounded, quiet, is_nan);
        _mm_storeu_si128(
            reinterpret_cast<__m128i*>(p),
            _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
    }
    static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
    static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
    static F add(F a, F b) { return _mm256_add_ps(a, b); }
    static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
    static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
    static F div(F a, F b) { return _mm256_div_ps(a, b); }
    static F reciprocal(F x) { return div(set(1.0f), x); }
    static F sqrt(F x) { return _mm256_sqrt_ps(x); }
    static F min(F a, F b) { return _mm256_min_ps(a, b); }
    static F max(F a, F b) { return _mm256_max_ps(a, b); }
    static F round(F x) {
        return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    static F where_below(F x, F limit, F below, F other) {
        return _mm256_blendv_ps(other, below, _mm256_cmp_ps(x, limit, _CMP_LT_OQ));
    }
    static F power_of_2(F n) {
        const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
        return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
    }
    // Products of 16-bit integers, summed in 32 bits.
    using I = __m256i;
    static constexpr int kIntegers = 16;
    static I zero_integers() { return _mm256_setzero_si256(); }
    static I integers(Shorts x) { return I(x); }
    static I load_integers(const int16_t* p) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    }
    static I load_integers(const int8_t* p) {
        return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static I multiply_add(I a, I b, I sums) {
        return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
    }
    static F to_floats(I x) { return _mm256_cvtepi32_ps(x); }
    // of(i) in the lanes of the i-th group of `shared` 16-bit integers.
    template <int shared, class Of>
    static F scales(const Of& of) {
        return set(of(0));
    }
    // {a0, b0, a1, b1, ...}: the lower half of it, and the upper one.
    static void interleave(F a, F b, F& lower, F& upper) {
        const F even = _mm256_unpacklo_ps(a, b), odd = _mm256_unpackhi_ps(a, b);
        lower = _mm256_permute2f128_ps(even, odd, 0x20);
        upper = _mm256_permute2f128_ps(even, odd, 0x31);
    }
    static int32_t total(I x) {
        __m128i half = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
        half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
        return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
    }
    static float first(F x) { return _mm256_cvtss_f32(x); }
    static float total(F x) {
        __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        half = _mm_add_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
    }
    static float maximum(F x) {
        __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        half = _mm_max_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
    }
};

constexpr const char* kKernelsName = "avx2";

#include "kernels/cpu/store_eight.h"
#include "kernels/cpu/table.h"

}  // namespace

extern const CpuKernels kAvx2Kernels;
const CpuKernels kAvx2Kernels = kTable;

}  // namespace hark
