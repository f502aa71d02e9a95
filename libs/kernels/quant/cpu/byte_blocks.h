// Quants of blocks as bytes, 64 at a time, for processors with AVX-512. What byte_products.cc,
// amx_tiles.cc and vnni_tiles.cc share; each compiles it with its own flags, so all names are local
// to the file.
//
// A span is 16 groups: a group is kShared (32 or 16) neighbouring weights with one scale and one
// minimum. The sums of a row of weights are 16: group g of every span is added to sum lane_of(g),
// span by span; then the sums at distance 8 are added, 4, 2 and 1. Lanes have the order in which
// byte_products.cc leaves the groups.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/tensor.h"
#include "kernels/quant/block_types.h"

namespace hark {
namespace {

using F = __m512;
using I = __m512i;

constexpr int kLanes = 16;

inline I load(const void* from) { return _mm512_loadu_si512(from); }
inline __m256i load_half(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
// {low, high}
inline I join(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// The group of each lane.
template <int shared>
constexpr std::array<int, kLanes> kGroupOfLane = {0, 2,  4,  6,  1, 3,  5,  7,
                                                  8, 10, 12, 14, 9, 11, 13, 15};
template <>
constexpr std::array<int, kLanes> kGroupOfLane<16> = {0, 4, 8,  12, 1, 5, 9,  13,
                                                      2, 6, 10, 14, 3, 7, 11, 15};

// The lanes of a span's first `parts` parts of 64 weights.
template <int shared>
constexpr __mmask16 lanes_of(int parts) {
    unsigned lanes = 0;
    for (int i = 0; i < kLanes; ++i)
        if (kGroupOfLane<shared>[static_cast<size_t>(i)] < parts * 64 / shared) lanes |= 1u << i;
    return static_cast<__mmask16>(lanes);
}

// 16 numbers of memory, `stride` bytes apart for neighbouring groups, as f16 in lanes; the lanes of
// absent parts are zero.
template <int shared, int stride>
inline F halves_at(const uint8_t* from, int parts) {
    constexpr auto& g = kGroupOfLane<shared>;
    constexpr int s = stride;
    const I places = _mm512_setr_epi32(g[0] * s, g[1] * s, g[2] * s, g[3] * s, g[4] * s, g[5] * s,
                                       g[6] * s, g[7] * s, g[8] * s, g[9] * s, g[10] * s, g[11] * s,
                                       g[12] * s, g[13] * s, g[14] * s, g[15] * s);
    const I found = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes_of<shared>(parts),
                                                places, from, 1);
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(found));
}

// Of a span's groups, in lanes. The minima are 0 for types without them.
struct GroupFactors {
    F scales, mins;
};

// A type: kParts parts of 64 weights in a span of kBytes. quants(i) is part i as unsigned bytes,
// kOffset too large: 0 for types with minima. factors() are those of the span's first `parts`
// parts. A group's quants that are signed bytes begin at kSignedBytesAt of it, else that is 0.
template <bool minimum, bool fifth_bit>
struct BytesSmall {
    static constexpr int kShared = 32, kParts = 8;
    static constexpr int kHigh = minimum ? 4 : 2, kLow = kHigh + (fifth_bit ? 4 : 0);
    static constexpr int kBlock = kLow + 16, kBytes = 16 * kBlock;
    static constexpr int kOffset = minimum ? 0 : fifth_bit ? 16 : 8;
    static constexpr int kSignedBytesAt = 0;
    static constexpr bool kHasMin = minimum;

    static I quants(const uint8_t* span, int i) {
        const uint8_t* block = span + 2 * i * kBlock;
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + kLow));
        const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + kBlock + kLow));
        const I twice = join(_mm256_broadcastsi128_si256(a), _mm256_broadcastsi128_si256(b));
        const I by = _mm512_set_epi64(0x0004000400040004, 0x0004000400040004, 0, 0,
                                      0x0004000400040004, 0x0004000400040004, 0, 0);
        const I four = _mm512_and_si512(_mm512_srlv_epi16(twice, by), _mm512_set1_epi8(15));
        if constexpr (!fifth_bit) return four;
        uint32_t low, high;
        std::memcpy(&low, block + kHigh, sizeof low);
        std::memcpy(&high, block + kBlock + kHigh, sizeof high);
        const uint64_t fifth = uint64_t{high} << 32 | low;
        return _mm512_mask_add_epi8(four, fifth, four, _mm512_set1_epi8(16));
    }
    static GroupFactors factors(const uint8_t* span, int parts) {
        return {halves_at<32, kBlock>(span, parts),
                minimum ? halves_at<32, kBlock>(span + 2, parts) : _mm512_setzero_ps()};
    }
};

struct BytesQ8_0 {
    static constexpr int kShared = 32, kParts = 8, kBytes = 16 * 34, kOffset = 128;
    static constexpr int kSignedBytesAt = 2;
    static constexpr bool kHasMin = false;

    static I quants(const uint8_t* span, int i) {
        const uint8_t* block = span + i * 68;
        return _mm512_xor_si512(join(load_half(block + 2), load_half(block + 36)),
                                _mm512_set1_epi8(static_cast<char>(0x80)));
    }
    static GroupFactors factors(const uint8_t* span, int parts) {
        return {halves_at<32, 34>(span, parts), _mm512_setzero_ps()};
    }
};

// A span is two blocks.
template <bool fifth_bit>
struct BytesQ45K {
    static constexpr int kLow = fifth_bit ? 48 : 16, kBlock = kLow + 128;
    static constexpr int kShared = 32, kParts = 8, kBytes = 2 * kBlock, kOffset = 0;
    static constexpr int kSignedBytesAt = 0;
    static constexpr bool kHasMin = true;

    // Eight scales, then eight minima.
    static F of_block(const uint8_t* block) {
        uint32_t a, b, c;  // kernels/quant/blocks/q4_k_q5_k.h
        std::memcpy(&a, block + 4, 4);
        std::memcpy(&b, block + 8, 4);
        std::memcpy(&c, block + 12, 4);
        constexpr uint32_t kSix = 0x3f3f3f3f, kFour = 0x0f0f0f0f, kTwo = 0x03030303;
        const __m128i bytes = _mm_set_epi32(
            static_cast<int>((c >> 4 & kFour) | (b >> 6 & kTwo) << 4), static_cast<int>(b & kSix),
            static_cast<int>((c & kFour) | (a >> 6 & kTwo) << 4), static_cast<int>(a & kSix));
        uint32_t both;
        std::memcpy(&both, block, 4);  // d and dmin
        const F d =
            _mm512_cvtph_ps(_mm256_mask_set1_epi16(_mm256_set1_epi16(static_cast<int16_t>(both)),
                                                   0xff00, static_cast<int16_t>(both >> 16)));
        const F positive = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)), d);
        return _mm512_mask_sub_ps(positive, 0xff00, _mm512_setzero_ps(), positive);
    }
    static I quants(const uint8_t* span, int i) {
        const uint8_t* block = span + i / 4 * kBlock;
        i %= 4;
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
    static GroupFactors factors(const uint8_t* span, int parts) {
        const F first = of_block(span);
        const F second = parts == kParts ? of_block(span + kBlock) : _mm512_setzero_ps();
        return {in_lanes<0>(first, second), in_lanes<8>(first, second)};
    }

  private:
    // Numbers `begin` to begin + 7 of both blocks.
    template <int begin>
    static F in_lanes(F first, F second) {
        constexpr int n = begin, m = 16 + begin;
        const I places = _mm512_setr_epi32(n, n + 2, n + 4, n + 6, n + 1, n + 3, n + 5, n + 7, m,
                                           m + 2, m + 4, m + 6, m + 1, m + 3, m + 5, m + 7);
        return _mm512_permutex2var_ps(first, places, second);
    }
};

// A span is one block.
struct BytesQ6K {
    static constexpr int kShared = 16, kParts = 4, kBytes = 210, kOffset = 32;
    static constexpr int kSignedBytesAt = 0;
    static constexpr bool kHasMin = false;

    // 64 of the 128 values of a half: the lower or the upper four bits of its 64 bytes, and two of
    // the bits of its 32 bytes.
    static I quants(const uint8_t* block, int i) {
        const I four = load(block + i / 2 * 64);
        const __m256i two = load_half(block + 128 + i / 2 * 32);
        const I low = i % 2 == 0 ? four : _mm512_srli_epi16(four, 4);
        const I high = i % 2 == 0 ? join(_mm256_slli_epi16(two, 4), _mm256_slli_epi16(two, 2))
                                  : join(two, _mm256_srli_epi16(two, 2));
        return _mm512_or_si512(_mm512_and_si512(low, _mm512_set1_epi8(15)),
                               _mm512_and_si512(high, _mm512_set1_epi8(0x30)));
    }
    static GroupFactors factors(const uint8_t* block, int) {
        const __m128i in_order = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 192));
        const __m128i lanes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        const __m128i scales = _mm_shuffle_epi8(in_order, lanes);
        return {_mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(scales)),
                              _mm512_set1_ps(half_at(block + 208))),
                _mm512_setzero_ps()};
    }
};

// Calls use(std::type_identity<the type's bytes>); false if it has none.
template <class Use>
bool with_bytes(Dtype dtype, const Use& use) {
    switch (dtype) {
        case Dtype::q4_0:
            return use(std::type_identity<BytesSmall<false, false>>()), true;
        case Dtype::q4_1:
            return use(std::type_identity<BytesSmall<true, false>>()), true;
        case Dtype::q5_0:
            return use(std::type_identity<BytesSmall<false, true>>()), true;
        case Dtype::q5_1:
            return use(std::type_identity<BytesSmall<true, true>>()), true;
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

// Requests a span's bytes into the second cache.
template <class Bytes>
[[gnu::always_inline]] inline void request(const uint8_t* span) {
#pragma GCC unroll 9
    for (int i = 0; i < Bytes::kBytes; i += 64)
        _mm_prefetch(reinterpret_cast<const char*>(span) + i, _MM_HINT_T1);
}

// Bytes of a row of `size` weights.
template <class Bytes>
constexpr int64_t bytes_of_row(int64_t size) {
    return size / 64 * Bytes::kBytes / Bytes::kParts;
}

}  // namespace
}  // namespace hark
