// For processors with AVX-512 and VNNI; compiled with their flags.
#include "kernels/quant/cpu/byte_products.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "kernels/quant/block_values.h"

namespace hark {
namespace {

using F = __m512;
using I = __m512i;

constexpr int kChains = 4;  // sums of their own: an addition waits for the one before it

F set(float x) { return _mm512_set1_ps(x); }
I load(const void* from) { return _mm512_loadu_si512(from); }
__m256i load_half(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
// {low, high}
I join(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
// a in the lower eight lanes, b in the upper ones: two f16 of memory.
F two_scales(const uint8_t* a, const uint8_t* b) {
    int16_t first, second;
    std::memcpy(&first, a, sizeof first);
    std::memcpy(&second, b, sizeof second);
    return _mm512_cvtph_ps(_mm256_mask_set1_epi16(_mm256_set1_epi16(first), 0xff00, second));
}

// A type's bytes: a span is kSpan weights, part i of it 64 of them. Span::scale(i) has the scale of
// each of the 16 lanes, to which four neighbouring products are added; Span::mins the minima of
// eight groups in the upper lanes.
template <bool fifth_bit>
struct BytesQ45_0 {
    static constexpr int kBlock = fifth_bit ? 22 : 18, kLow = kBlock - 16;
    static constexpr int kSpan = 64, kBytes = 2 * kBlock, kOffset = fifth_bit ? 16 : 8;
    static constexpr bool kHasMin = false;
    const uint8_t* block;

    explicit BytesQ45_0(const uint8_t* from) : block(from) {}
    I quants(int) const {
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + kLow));
        const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + kBlock + kLow));
        const I twice = join(_mm256_broadcastsi128_si256(a), _mm256_broadcastsi128_si256(b));
        const I by = _mm512_set_epi64(0x0004000400040004, 0x0004000400040004, 0, 0,
                                      0x0004000400040004, 0x0004000400040004, 0, 0);
        const I four = _mm512_and_si512(_mm512_srlv_epi16(twice, by), _mm512_set1_epi8(15));
        if constexpr (!fifth_bit) return four;
        uint32_t low, high;
        std::memcpy(&low, block + 2, sizeof low);
        std::memcpy(&high, block + kBlock + 2, sizeof high);
        const uint64_t fifth = uint64_t{high} << 32 | low;
        return _mm512_mask_add_epi8(four, fifth, four, _mm512_set1_epi8(16));
    }
    F scale(int) const { return two_scales(block, block + kBlock); }
};

struct BytesQ8_0 {
    static constexpr int kSpan = 64, kBytes = 68, kOffset = 128;
    static constexpr bool kHasMin = false;
    const uint8_t* block;

    explicit BytesQ8_0(const uint8_t* from) : block(from) {}
    I quants(int) const {
        return _mm512_xor_si512(join(load_half(block + 2), load_half(block + 36)),
                                _mm512_set1_epi8(static_cast<char>(0x80)));
    }
    F scale(int) const { return two_scales(block, block + 34); }
};

template <bool fifth_bit>
struct BytesQ45K {
    static constexpr int kLow = fifth_bit ? 48 : 16;
    static constexpr int kSpan = 256, kBytes = kLow + 128, kOffset = 0;
    static constexpr bool kHasMin = true;
    const uint8_t* block;
    F factors;  // eight scales, then eight minima

    explicit BytesQ45K(const uint8_t* from) : block(from) {
        uint32_t a, b, c;  // kernels/quant/blocks/q4_k_q5_k.h
        std::memcpy(&a, block + 4, 4);
        std::memcpy(&b, block + 8, 4);
        std::memcpy(&c, block + 12, 4);
        constexpr uint32_t kSix = 0x3f3f3f3f, kFour = 0x0f0f0f0f, kTwo = 0x03030303;
        const __m128i bytes = _mm_set_epi32(
            static_cast<int>((c >> 4 & kFour) | (b >> 6 & kTwo) << 4), static_cast<int>(b & kSix),
            static_cast<int>((c & kFour) | (a >> 6 & kTwo) << 4), static_cast<int>(a & kSix));
        const F d = two_scales(block, block + 2);
        const F whole = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
        const F positive = _mm512_mul_ps(whole, d);
        factors = _mm512_mask_sub_ps(positive, 0xff00, _mm512_setzero_ps(), positive);
    }
    I quants(int i) const {
        const __m256i bytes = load_half(block + kLow + i * 32);
        const I four =
            _mm512_and_si512(join(bytes, _mm256_srli_epi16(bytes, 4)), _mm512_set1_epi8(15));
        if constexpr (!fifth_bit) return four;
        const __m256i bits = load_half(block + 16);
        const auto to_fifth = [&](int bit) {
            return bit < 4 ? _mm256_slli_epi16(bits, 4 - bit) : _mm256_srli_epi16(bits, bit - 4);
        };
        const I fifth =
            _mm512_and_si512(join(to_fifth(2 * i), to_fifth(2 * i + 1)), _mm512_set1_epi8(16));
        return _mm512_or_si512(four, fifth);
    }
    F scale(int i) const {
        const I lanes = _mm512_mask_set1_epi32(_mm512_set1_epi32(2 * i), 0xff00, 2 * i + 1);
        return _mm512_permutexvar_ps(lanes, factors);
    }
    // of the sums of the block's eight groups of x
    F mins_times(const float* sums) const {
        return _mm512_mul_ps(factors, _mm512_maskz_expandloadu_ps(0xff00, sums));
    }
};

struct BytesQ6K {
    static constexpr int kSpan = 256, kBytes = 210, kOffset = 32;
    static constexpr bool kHasMin = false;
    const uint8_t* block;
    F factors;  // sixteen scales

    explicit BytesQ6K(const uint8_t* from) : block(from) {
        const __m128i scales = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 192));
        factors = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(scales)),
                                set(half_at(block + 208)));
    }
    // 64 of the 128 values of a half: the lower or the upper four bits of its 64 bytes, and two of
    // the bits of its 32 bytes.
    I quants(int i) const {
        const I four = load(block + i / 2 * 64);
        const __m256i two = load_half(block + 128 + i / 2 * 32);
        const I low = i % 2 == 0 ? four : _mm512_srli_epi16(four, 4);
        const I high = i % 2 == 0 ? join(_mm256_slli_epi16(two, 4), _mm256_slli_epi16(two, 2))
                                  : join(two, _mm256_srli_epi16(two, 2));
        return _mm512_or_si512(_mm512_and_si512(low, _mm512_set1_epi8(15)),
                               _mm512_and_si512(high, _mm512_set1_epi8(0x30)));
    }
    F scale(int i) const {
        const I lanes =
            _mm512_add_epi32(_mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0),
                             _mm512_set1_epi32(4 * i));
        return _mm512_permutexvar_ps(lanes, factors);
    }
};

// Calls use(std::type_identity<the type's bytes>); false if it has none.
template <class Use>
bool with_bytes(Dtype dtype, const Use& use) {
    switch (dtype) {
        case Dtype::q4_0:
            return use(std::type_identity<BytesQ45_0<false>>()), true;
        case Dtype::q5_0:
            return use(std::type_identity<BytesQ45_0<true>>()), true;
        case Dtype::q8_0:
            return use(std::type_identity<BytesQ8_0>()), true;
        case Dtype::q4_k:
            return use(std::type_identity<BytesQ45K<false>>()), true;
        case Dtype::q5_k:
            return use(std::type_identity<BytesQ45K<true>>()), true;
        case Dtype::q6_k:
            return use(std::type_identity<BytesQ6K>()), true;
        default:
            return false;
    }
}

bool has(Dtype dtype, int64_t size) {
    return size % 64 == 0 && with_bytes(dtype, [](auto) {});
}

// One row of weights times T rows of x.
template <class Bytes, int T>
void row_tile(float* y, int64_t ldy, const ByteInputs& x, int64_t first, const uint8_t* block,
              int64_t size) {
    F sums[T][kChains];
    for (auto& row : sums) std::fill_n(row, kChains, _mm512_setzero_ps());
    const auto add = [&](const Bytes& span, int part, int64_t k, int chain) {
        const I quants = span.quants(part);
        const F scale = span.scale(part);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
            const int64_t at = (first + t) * size + k;
            const I high = _mm512_dpbusd_epi32(_mm512_setzero_si512(), quants, load(x.high + at));
            I low = Bytes::kOffset ? load(x.offsets + at / 4) : _mm512_setzero_si512();
            low = _mm512_dpbusd_epi32(low, quants, load(x.low + at));
            const I total = _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
            sums[t][chain] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(total), sums[t][chain]);
        }
    };
    constexpr int kSpans = 256 / Bytes::kSpan;  // of kChains parts
    int64_t k = 0;
    for (; k + 256 <= size; k += 256, block += kSpans * Bytes::kBytes) {
#pragma GCC unroll 8
        for (int i = 0; i < kSpans * Bytes::kBytes; i += 64)
            _mm_prefetch(reinterpret_cast<const char*>(block) + kBytesAhead + i, _MM_HINT_T1);
        if constexpr (kSpans == 1) {
            const Bytes span(block);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) add(span, i, k + i * 64, i);
            if constexpr (Bytes::kHasMin)
                for (int t = 0; t < T; ++t) {
                    const float* sums_of_x = x.sums + ((first + t) * size + k) / 32;
                    sums[t][0] = _mm512_add_ps(sums[t][0], span.mins_times(sums_of_x));
                }
        } else {
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) add(Bytes(block + i * Bytes::kBytes), 0, k + i * 64, i);
        }
    }
    if constexpr (kSpans > 1)
        for (; k < size; k += 64, block += Bytes::kBytes) add(Bytes(block), 0, k, 0);
    for (int t = 0; t < T; ++t) {
        const F total = _mm512_add_ps(_mm512_add_ps(sums[t][0], sums[t][2]),
                                      _mm512_add_ps(sums[t][1], sums[t][3]));
        y[t * ldy] = _mm512_reduce_add_ps(total) * x.scales[first + t];
    }
}

template <class Bytes, int T>
void rows_times(float* y, int64_t ldy, const ByteInputs& x, int64_t first, const uint8_t* blocks,
                int64_t size, int64_t count) {
    const int64_t row_bytes = size / Bytes::kSpan * Bytes::kBytes;
    for (int64_t n = 0; n < count; ++n)
        row_tile<Bytes, T>(y + first * ldy + n, ldy, x, first, blocks + n * row_bytes, size);
}

void products(float* y, int64_t ldy, const ByteInputs& x, int64_t t_size, const uint8_t* blocks,
              Dtype dtype, int64_t size, int64_t count) {
    with_bytes(dtype, [&](auto type) {
        using Bytes = typename decltype(type)::type;
        int64_t t = 0;
        for (; t + 4 <= t_size; t += 4) rows_times<Bytes, 4>(y, ldy, x, t, blocks, size, count);
        for (; t + 2 <= t_size; t += 2) rows_times<Bytes, 2>(y, ldy, x, t, blocks, size, count);
        if (t < t_size) rows_times<Bytes, 1>(y, ldy, x, t, blocks, size, count);
    });
}

void split(const ByteInputs& to, int64_t t, const int16_t* values, Dtype dtype, int64_t size) {
    int offset = 0;
    with_bytes(dtype, [&](auto type) { offset = decltype(type)::type::kOffset; });
    const I by = _mm512_set1_epi32(-offset), half = _mm512_set1_epi16(128);
    const I ones = _mm512_set1_epi8(1);
    for (int64_t k = 0; k < size; k += 64) {
        const int64_t at = t * size + k;
        const I a = load(values + k), b = load(values + k + 32);
        // low = the lower byte with its sign; high = the rest
        const I low = join(_mm512_cvtepi16_epi8(a), _mm512_cvtepi16_epi8(b));
        const I high = join(_mm512_cvtepi16_epi8(_mm512_srai_epi16(_mm512_add_epi16(a, half), 8)),
                            _mm512_cvtepi16_epi8(_mm512_srai_epi16(_mm512_add_epi16(b, half), 8)));
        _mm512_storeu_si512(to.low + at, low);
        _mm512_storeu_si512(to.high + at, high);
        const I fours = _mm512_add_epi32(
            _mm512_slli_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, high), 8),
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, low));
        _mm512_storeu_si512(to.offsets + at / 4, _mm512_mullo_epi32(fours, by));
        to.sums[at / 32] = static_cast<float>(_mm512_mask_reduce_add_epi32(0x00ff, fours));
        to.sums[at / 32 + 1] = static_cast<float>(_mm512_mask_reduce_add_epi32(0xff00, fours));
    }
}

}  // namespace

extern const ByteKernels kVnniKernels;
const ByteKernels kVnniKernels = {.has = has, .split = split, .products = products};

}  // namespace hark
