// For processors with AVX-512 and VNNI; compiled with their flags.
#include "kernels/quant/cpu/byte_products.h"

#include <algorithm>

#include "kernels/cpu/cpu.h"
#include "kernels/quant/cpu/byte_blocks.h"

namespace hark {
namespace {

bool has(Dtype dtype, int64_t size) {
    return size % 64 == 0 && with_bytes(dtype, [](auto) {});
}

// a and b hold sums of parts of groups in their lanes: neighbouring lanes are added.
inline I add_pairs(I a, I b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
inline I add_twos(I a, I b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

// The products of four parts with a row of x, whose bytes begin at `high` and `low`: each group's
// sum, or for groups of 32 its half, is in a lane.
inline I four_parts(const I (&quants)[4], const int8_t* high, const int8_t* low, int parts) {
    const auto part = [&](int i) {
        if (i >= parts) return _mm512_setzero_si512();
        const I zero = _mm512_setzero_si512();
        const I of_high = _mm512_dpbusd_epi32(zero, quants[i], load(high + i * 64));
        const I of_low = _mm512_dpbusd_epi32(zero, quants[i], load(low + i * 64));
        return _mm512_add_epi32(_mm512_slli_epi32(of_high, 8), of_low);
    };
    const I first = add_pairs(part(0), part(1));
    return add_twos(first, add_pairs(part(2), part(3)));
}

// The sums of groups of 32 from those of their halves.
inline I add_halves(I a, I b) {
    return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

// sums += one span of weights times T rows of x, whose bytes begin at column k.
template <class Bytes, int T>
[[gnu::always_inline]] inline void add_span(F (&sums)[T], const ByteInputs& x, int64_t k,
                                            int64_t group, int64_t size, const uint8_t* span,
                                            int parts) {
    constexpr int kFours = Bytes::kParts / 4;
    I fours[T][kFours];
#pragma GCC unroll 2
    for (int f = 0; f < kFours; ++f) {
        I quants[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
            quants[i] = 4 * f + i < parts ? Bytes::quants(span, 4 * f + i) : _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
            const int64_t at = t * size + k + f * 256;
            fours[t][f] = four_parts(quants, x.high + at, x.low + at, parts - 4 * f);
        }
    }
    const auto [scales, mins] = Bytes::factors(span, parts);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
        const I of_x = load(x.sums + t * room_for_groups(size) + group);
        I total = fours[t][0];
        if constexpr (kFours == 2) total = add_halves(fours[t][0], fours[t][1]);
        if constexpr (!Bytes::kHasMin) total = _mm512_add_epi32(total, of_x);
        sums[t] = _mm512_fmadd_ps(scales, _mm512_cvtepi32_ps(total), sums[t]);
        if constexpr (Bytes::kHasMin)
            sums[t] = _mm512_fmadd_ps(mins, _mm512_cvtepi32_ps(of_x), sums[t]);
    }
}

// One row of weights times T rows of x.
template <class Bytes, int T>
void row_tile(float* y, int64_t ldy, const ByteInputs& x, const uint8_t* row, int64_t size) {
    F sums[T];
    std::fill_n(sums, T, _mm512_setzero_ps());
    int64_t k = 0, group = 0;
    for (; k + Bytes::kParts * 64 <= size; k += Bytes::kParts * 64, row += Bytes::kBytes) {
        request<Bytes>(row + kBytesAhead);
        add_span<Bytes, T>(sums, x, k, group, size, row, Bytes::kParts);
        group += kLanes;
    }
    if (k < size)
        add_span<Bytes, T>(sums, x, k, group, size, row, static_cast<int>((size - k) / 64));
    for (int t = 0; t < T; ++t) y[t * ldy] = _mm512_reduce_add_ps(sums[t]) * x.scales[t];
}

template <class Bytes, int T>
void rows_times(float* y, int64_t ldy, const ByteInputs& x, int64_t t, const uint8_t* blocks,
                int64_t size, int64_t count) {
    const ByteInputs from = {x.high + t * size, x.low + t * size,
                             x.sums + t * room_for_groups(size), x.scales + t};
    const int64_t row_size = bytes_of_row<Bytes>(size);
    for (int64_t n = 0; n < count; ++n)
        row_tile<Bytes, T>(y + t * ldy + n, ldy, from, blocks + n * row_size, size);
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

// The sums of the groups in lanes.
template <class Bytes>
void sum_groups(int32_t* sums, const int16_t* values, int64_t size) {
    constexpr int shared = Bytes::kShared, kFactor = Bytes::kHasMin ? 1 : -Bytes::kOffset;
    std::fill_n(sums, room_for_groups(size), 0);
    for (int64_t span = 0; span * kLanes * shared < size; ++span)
        for (size_t lane = 0; lane < kLanes; ++lane) {
            const int64_t k = (span * kLanes + kGroupOfLane<shared>[lane]) * shared;
            if (k >= size) continue;
            __m256i sum = _mm256_setzero_si256();
            for (int i = 0; i < shared; i += 16)
                sum = _mm256_add_epi32(
                    sum, _mm256_madd_epi16(load_half(values + k + i), _mm256_set1_epi16(1)));
            sums[span * kLanes + static_cast<int64_t>(lane)] =
                kFactor * _mm512_reduce_add_epi32(_mm512_zextsi256_si512(sum));
        }
}

void split(const ByteInputs& to, int64_t t, const int16_t* values, Dtype dtype, int64_t size) {
    const I half = _mm512_set1_epi16(128);
    for (int64_t k = 0; k < size; k += 64) {
        const int64_t at = t * size + k;
        const I a = load(values + k), b = load(values + k + 32);
        // low = the lower byte with its sign; high = the rest
        const I low = join(_mm512_cvtepi16_epi8(a), _mm512_cvtepi16_epi8(b));
        const I high = join(_mm512_cvtepi16_epi8(_mm512_srai_epi16(_mm512_add_epi16(a, half), 8)),
                            _mm512_cvtepi16_epi8(_mm512_srai_epi16(_mm512_add_epi16(b, half), 8)));
        _mm512_storeu_si512(to.low + at, low);
        _mm512_storeu_si512(to.high + at, high);
    }
    with_bytes(dtype, [&](auto type) {
        sum_groups<typename decltype(type)::type>(to.sums + t * room_for_groups(size), values,
                                                  size);
    });
}

}  // namespace

extern const ByteKernels kVnniKernels;
const ByteKernels kVnniKernels = {.has = has, .split = split, .products = products};

}  // namespace hark
