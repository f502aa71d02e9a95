// For processors with AVX-512 and VNNI; compiled with their flags.
#include "kernels/attention/cpu/integer_attention.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/cpu/lanes.h"

namespace hark {
namespace {

using F = __m512;
using I = __m512i;

constexpr int kLanes = 16;
constexpr int kVectors = 4;
constexpr int64_t kPanel = kLanes * kVectors;
constexpr int64_t kStep = kPanel * 4;  // bytes of a panel: four of each column
constexpr int kTileRows = 6;           // 24 of 32 registers hold sums
constexpr int64_t kBlock = 12;         // queries at a time: their scores stay in the second cache
constexpr int64_t kChain = 128;        // keys whose products are summed exactly
constexpr float kScores = 1 << 30;     // the largest: differences fit 32 bits
constexpr int32_t kWeights = INT16_MAX, kValues = 511;
static_assert(kChain * kWeights * kValues <= INT32_MAX);

F magnitude(F x) { return _mm512_abs_ps(x); }

// range / largest, and its inverse in `scale`.
float factor_of(float largest, float range, float& scale) {
    scale = largest / range;
    return largest > 0 ? range / largest : 0;
}

// The larger of two magnitudes by their bits: NaN is larger than infinity.
F larger(F a, F b) {
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}

float largest_of(const float* x, int64_t n) {
    F most = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += kLanes)
        most = larger(most, magnitude(_mm512_maskz_loadu_ps(first_lanes(n - i), x + i)));
    return std::bit_cast<float>(_mm512_reduce_max_epu32(_mm512_castps_si512(most)));
}

// How queries and keys are rounded: four bytes of one are multiplied by four of the other.
struct Shorts {
    using Value = int16_t;
    static constexpr float kRange = INT16_MAX;
    static constexpr int32_t kOffset = 0;  // of the queries
    static void store(std::byte* to, I values) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(values));
    }
    static I dot(I sums, I columns, I factors) {
        return _mm512_dpwssd_epi32(sums, columns, factors);
    }
};
// The instruction takes one factor without a sign: queries + 128, and sums begin at -128 times the
// key's.
struct Bytes {
    using Value = int8_t;
    static constexpr float kRange = INT8_MAX;
    static constexpr int32_t kOffset = 128;
    static void store(std::byte* to, I values) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(values));
    }
    static I dot(I sums, I columns, I factors) {
        return _mm512_dpbusd_epi32(sums, factors, columns);
    }
};

// The largest integer of queries and keys.
template <class Keys>
float range_of(int64_t head) {
    return std::min(Keys::kRange, std::floor(std::sqrt(kScores / static_cast<float>(head))));
}

// to[0 .. round_up(n, 16)) = from * factor, rounded, then zeros, all plus `offset`; returns the sum
// without it.
template <class Keys>
int32_t round_row(std::byte* to, const float* from, int64_t n, float factor, int32_t offset) {
    I total = _mm512_setzero_si512();
    for (int64_t i = 0; i < n; i += kLanes) {
        const F x = _mm512_maskz_loadu_ps(first_lanes(n - i), from + i);
        const I rounded = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(factor)));
        total = _mm512_add_epi32(total, rounded);
        Keys::store(to + i * int64_t{sizeof(typename Keys::Value)},
                    _mm512_add_epi32(rounded, _mm512_set1_epi32(offset)));
    }
    return _mm512_reduce_add_epi32(total);
}

// Room for one head's operands. Rows of queries and keys are `width` long.
struct Scratch {
    int64_t keys, width, channels;  // rounded up
    int64_t bytes = 0;
    std::byte *packed_keys = nullptr, *packed_values = nullptr, *q = nullptr, *row = nullptr;
    int32_t* first_scores = nullptr;  // (keys): what a key's sums begin with
    int32_t* scores = nullptr;  // (kBlock, keys); a row's weights take the place of its scores
    float *sums = nullptr, *value_scales = nullptr;

    Scratch(int64_t keys_count, int64_t head, std::byte* memory)
        : keys(round_up(keys_count, kPanel)),
          width(round_up(head, kLanes)),
          channels(round_up(head, kPanel)) {
        const auto take = [&](auto*& to, int64_t count) {
            if (memory)
                to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(memory + bytes);
            bytes += round_up(count * static_cast<int64_t>(sizeof *to), 64);
        };
        take(packed_keys, keys * width * 2);
        take(packed_values, keys * channels * 2);
        take(q, kBlock * width * 2);
        take(row, width * 2);
        take(first_scores, keys);
        take(scores, kBlock * keys);
        take(sums, kBlock * channels);
        take(value_scales, channels);
    }
    template <class Keys>
    int64_t row_bytes() const {
        return width * int64_t{sizeof(typename Keys::Value)};
    }
};

// Panels of kPanel keys: packed[panel][four bytes of a row][key]. Returns the keys' scale.
template <class Keys>
float pack_keys(const Scratch& to, const HeadInputs& in) {
    float scale;
    const float largest = largest_of(in.keys, in.keys_count * in.head);
    const float factor = factor_of(largest, range_of<Keys>(in.head), scale);
    const int64_t row_bytes = to.row_bytes<Keys>();
    for (int64_t j = 0; j < to.keys; ++j) {
        int32_t total = 0;
        if (j < in.keys_count)
            total = round_row<Keys>(to.row, in.keys + j * in.head, in.head, factor, 0);
        else
            std::fill_n(to.row, row_bytes, std::byte{0});
        to.first_scores[j] = -Keys::kOffset * total;
        std::byte* place = to.packed_keys + j / kPanel * kPanel * row_bytes + j % kPanel * 4;
        for (int64_t d = 0; d < row_bytes; d += 4, place += kStep)
            std::memcpy(place, to.row + d, 4);
    }
    return scale;
}

// Panels of kPanel channels: packed[panel][pair of keys][channel][2].
void pack_values(const Scratch& to, const HeadInputs& in) {
    for (int64_t d = 0; d < to.channels; d += kLanes) {
        const __mmask16 lanes = d < in.head ? first_lanes(in.head - d) : __mmask16{0};
        const auto load = [&](int64_t j) {
            return j < in.keys_count ? _mm512_maskz_loadu_ps(lanes, in.values + j * in.head + d)
                                     : _mm512_setzero_ps();
        };
        F most = _mm512_setzero_ps();
        for (int64_t j = 0; j < in.keys_count; ++j) most = larger(most, magnitude(load(j)));
        const F range = _mm512_set1_ps(kValues);
        const __mmask16 some = _mm512_cmp_ps_mask(most, _mm512_setzero_ps(), _CMP_GT_OQ);
        const F factor = _mm512_maskz_div_ps(some, range, most);
        _mm512_store_ps(to.value_scales + d, _mm512_div_ps(most, range));
        const auto rounded = [&](int64_t j) {
            return _mm512_cvtps_epi32(_mm512_mul_ps(load(j), factor));
        };
        std::byte* place = to.packed_values + (d / kPanel * kPanel * to.keys * 2 + d % kPanel * 4);
        for (int64_t j = 0; j < to.keys; j += 2, place += kStep) {
            const I low = _mm512_and_si512(rounded(j), _mm512_set1_epi32(0xffff));
            _mm512_store_si512(place, _mm512_or_si512(low, _mm512_slli_epi32(rounded(j + 1), 16)));
        }
    }
}

I four_bytes(const std::byte* from) {
    int32_t all;
    std::memcpy(&all, from, sizeof all);
    return _mm512_set1_epi32(all);
}

// first (kPanel) plus the products of T rows of a, lda bytes apart, with `steps` times four bytes
// of a panel's columns: store(t, column, sums) for each vector of them. Inlined, or without the
// asm, g++ 12 moves every sum to another register or to memory in each step: 1.5 to 2 times as
// long.
template <class Type, int T, class Store>
[[gnu::noinline]] void multiply(const std::byte* a, int64_t lda, const std::byte* panel,
                                int64_t steps, const int32_t* first, Store store) {
    I totals[T][kVectors];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) totals[t][v] = _mm512_load_si512(first + v * kLanes);
    for (int64_t i = 0; i < steps; ++i, panel += kStep) {
        I columns[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) columns[v] = _mm512_load_si512(panel + v * kLanes * 4);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
            const I factors = four_bytes(a + t * lda + 4 * i);
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) {
                totals[t][v] = Type::dot(totals[t][v], columns[v], factors);
                asm("" : "+v"(totals[t][v]));
            }
        }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) store(t, v * kLanes, totals[t][v]);
}

// Calls tile(std::integral_constant<int, T>, row) for all rows, kTileRows at a time.
template <class Tile, int... T>
void in_tiles(int64_t rows, const Tile& tile, std::integer_sequence<int, T...>) {
    int64_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows) tile(std::integral_constant<int, kTileRows>(), r);
    ((rows - r == T + 1 ? tile(std::integral_constant<int, T + 1>(), r) : void()), ...);
}
template <class Tile>
void in_tiles(int64_t rows, const Tile& tile) {
    in_tiles(rows, tile, std::make_integer_sequence<int, kTileRows - 1>());
}

template <class Keys>
void multiply_keys(const Scratch& of, int64_t rows) {
    const int64_t row_bytes = of.row_bytes<Keys>();
    for (int64_t n = 0; n < of.keys; n += kPanel)
        in_tiles(rows, [&](auto tile, int64_t r) {
            constexpr int T = decltype(tile)::value;
            int32_t* to = of.scores + r * of.keys + n;
            multiply<Keys, T>(of.q + r * row_bytes, row_bytes, of.packed_keys + n * row_bytes,
                              row_bytes / 4, of.first_scores + n,
                              [to, ld = of.keys](int t, int column, I sums) {
                                  _mm512_store_si512(to + t * ld + column, sums);
                              });
        });
}

// 2^x * kWeights for x <= 0; relative error 3e-6.
F weight_of(F x) {
    const F whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const F f = _mm512_sub_ps(x, whole);
    const auto factor = [](double c) { return _mm512_set1_ps(static_cast<float>(c * kWeights)); };
    F y = _mm512_fmadd_ps(factor(0.009676037), f, factor(0.05592204));
    y = _mm512_fmadd_ps(y, f, factor(0.2402211));
    y = _mm512_fmadd_ps(y, f, factor(0.6931210));
    y = _mm512_fmadd_ps(y, f, factor(1.0000001));
    return _mm512_scalef_ps(y, whole);
}

// The weights exp(scale * (score - the largest)) of a row, in the place of its n scores and with
// zeros up to `padded`; returns their sum.
float weigh(int32_t* scores, int64_t n, int64_t padded, float scale) {
    I most = _mm512_set1_epi32(INT32_MIN);
    for (int64_t i = 0; i < n; i += kLanes) {
        const __mmask16 lanes = first_lanes(n - i);
        most = _mm512_mask_max_epi32(most, lanes, most, _mm512_load_si512(scores + i));
    }
    const I top = _mm512_set1_epi32(_mm512_reduce_max_epi32(most));
    const F factor = _mm512_set1_ps(scale * static_cast<float>(M_LOG2E));
    auto* weights = reinterpret_cast<int16_t*>(scores);
    I total = _mm512_setzero_si512();
    for (int64_t i = 0; i < padded; i += kLanes) {
        const __mmask16 lanes = i < n ? first_lanes(n - i) : __mmask16{0};
        const I below = _mm512_sub_epi32(_mm512_load_si512(scores + i), top);
        const F weight = weight_of(_mm512_mul_ps(_mm512_cvtepi32_ps(below), factor));
        const I rounded = _mm512_maskz_cvtps_epi32(lanes, weight);
        total = _mm512_add_epi32(total, rounded);
        _mm256_store_si256(reinterpret_cast<__m256i*>(weights + i), _mm512_cvtepi32_epi16(rounded));
    }
    return _mm512_reduce_add_ps(_mm512_cvtepi32_ps(total));
}

alignas(64) constexpr int32_t kZeros[kPanel] = {};

// sums (rows, channels) = the weighted values, in chains of kChain keys.
void multiply_values(const Scratch& of, int64_t rows) {
    const auto* weights = reinterpret_cast<const std::byte*>(of.scores);
    const int64_t row_bytes = of.keys * int64_t{sizeof *of.scores};
    for (int64_t n = 0; n < of.channels; n += kPanel)
        in_tiles(rows, [&](auto tile, int64_t r) {
            constexpr int T = decltype(tile)::value;
            float* to = of.sums + r * of.channels + n;
            for (int64_t k = 0; k < of.keys; k += kChain) {
                const __mmask16 before = k > 0 ? 0xffff : 0;
                multiply<Shorts, T>(weights + r * row_bytes + k * 2, row_bytes,
                                    of.packed_values + (n * of.keys + k * kPanel) * 2,
                                    std::min(kChain, of.keys - k) / 2, kZeros,
                                    [to, before, ld = of.channels](int t, int column, I sums) {
                                        float* at = to + t * ld + column;
                                        const F old = _mm512_maskz_load_ps(before, at);
                                        _mm512_store_ps(
                                            at, _mm512_add_ps(old, _mm512_cvtepi32_ps(sums)));
                                    });
            }
        });
}

template <class Keys>
void attend_with(const HeadInputs& in, const Scratch& scratch) {
    const float key_scale = pack_keys<Keys>(scratch, in);
    pack_values(scratch, in);
    for (int64_t begin = 0; begin < in.queries; begin += kBlock) {
        const int64_t rows = std::min(kBlock, in.queries - begin);
        float scales[kBlock];
        for (int64_t r = 0; r < rows; ++r) {
            const float* q = in.q + (begin + r) * in.q_stride;
            const float range = range_of<Keys>(in.head);
            const float factor = factor_of(largest_of(q, in.head), range, scales[r]);
            round_row<Keys>(scratch.q + r * scratch.row_bytes<Keys>(), q, in.head, factor,
                            Keys::kOffset);
        }
        multiply_keys<Keys>(scratch, rows);
        for (int64_t r = 0; r < rows; ++r) {
            const float scale = in.scale * key_scale * scales[r];
            scales[r] = weigh(scratch.scores + r * scratch.keys, in.keys_count, scratch.keys,
                              std::isfinite(scale) ? scale : 0);
            if (!std::isfinite(scale)) scales[r] = scale * 0;  // NaN, as in float32
        }
        multiply_values(scratch, rows);
        for (int64_t r = 0; r < rows; ++r) {
            const F inverse = _mm512_set1_ps(1 / scales[r]);
            for (int64_t d = 0; d < in.head; d += kLanes) {
                const F sum = _mm512_load_ps(scratch.sums + r * scratch.channels + d);
                const F scale = _mm512_mul_ps(inverse, _mm512_load_ps(scratch.value_scales + d));
                _mm512_mask_storeu_ps(in.out + (begin + r) * in.out_stride + d,
                                      first_lanes(in.head - d), _mm512_mul_ps(sum, scale));
            }
        }
    }
}

void attend(const HeadInputs& in, std::byte* memory) {
    const Scratch scratch(in.keys_count, in.head, memory);
    if (in.bits == 8) return attend_with<Bytes>(in, scratch);
    attend_with<Shorts>(in, scratch);
}

int64_t scratch_bytes(int64_t keys_count, int64_t head) {
    return Scratch(keys_count, head, nullptr).bytes;
}

}  // namespace

extern const IntegerAttention kVnniAttention;
const IntegerAttention kVnniAttention = {.scratch_bytes = scratch_bytes, .attend = attend};

}  // namespace hark
