// For processors with AVX-512 and AMX; compiled with their flags.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lanes.h"
#include "kernels/linear/cpu/split_products.h"
#include "kernels/quant/cpu/tile_shapes.h"
#include "kernels/quant/cpu/transpose.h"

namespace hark {
namespace {

using F = __m512;
using I = __m512i;

constexpr int64_t kRows = 16;      // of a tile
constexpr int64_t kColumns = 32;   // of a tile of parts
constexpr int64_t kNumbers = 256;  // of 32 bits in a tile
// Columns at a time: their weights' parts stay in the second cache, and sums are chains of them.
constexpr int64_t kDepth = 1024;

constexpr TileShapes kShapes = {.row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

// Parts of the weights and of x. Products of parts i and j, from 0 on, are left out for i + j >= x.
template <int weights, int x>
struct Split {
    static constexpr int kWeights = weights, kX = x;
};

// Calls use(Split) for weights of a type.
template <class Use>
auto with_split(Dtype dtype, const Use& use) {
    if (dtype == Dtype::f32) return use(Split<3, 3>());
    if (dtype == Dtype::f16) return use(Split<2, 3>());
    if (dtype == Dtype::bf16) return use(Split<1, 3>());
    return use(Split<2, 2>());
}

// A NaN of all ones would be rounded to zero: every NaN becomes the usual one.
[[gnu::always_inline]] inline F with_usual_nan(F x) {
    const F nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}

// The bf16 parts of 32 numbers: each the nearest to what the parts before it leave. Word i holds
// columns i and 16 + i. Infinity, and what rounds to it, leaves NaN.
template <int count>
[[gnu::always_inline]] inline void split(F first, F second, I (&parts)[count]) {
    const I half = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32(static_cast<int>(~0xffffu));
    constexpr int kFirstOrSecondAndMask = 0xf8;
    first = with_usual_nan(first);
    second = with_usual_nan(second);
#pragma GCC unroll 3
    for (int i = 0; i < count; ++i) {
        const I a = _mm512_add_epi32(_mm512_castps_si512(first), half);
        const I b = _mm512_add_epi32(_mm512_castps_si512(second), half);
        parts[i] =
            _mm512_ternarylogic_epi32(_mm512_srli_epi32(a, 16), b, upper, kFirstOrSecondAndMask);
        if (i + 1 == count) return;
        first = _mm512_sub_ps(first, _mm512_castsi512_ps(_mm512_and_si512(a, upper)));
        second = _mm512_sub_ps(second, _mm512_castsi512_ps(_mm512_and_si512(b, upper)));
    }
}

F load(const float* from, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, from); }
F load(const f16_t* from, __mmask16 lanes) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, from));
}
F load(const bf16_t* from, __mmask16 lanes) {
    const __m256i bits = _mm256_maskz_loadu_epi16(lanes, from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// A tile of part j of x: {word of two columns; row}; steps of kColumns, their parts together.
template <int count>
void arrange_parts(int32_t* to, const float* x, int64_t t_size, int64_t size) {
    for (int64_t k = 0; k < size; k += kColumns, to += count * kNumbers) {
        I rows[count][kRows] = {};
        for (int64_t t = 0; t < t_size; ++t) {
            const float* from = x + t * size + k;
            I parts[count];
            split(load(from, first_lanes(size - k)), load(from + 16, first_lanes(size - k - 16)),
                  parts);
            for (int i = 0; i < count; ++i) rows[i][t] = parts[i];
        }
        for (int i = 0; i < count; ++i) {
            transpose(rows[i]);
            for (int64_t j = 0; j < kRows; ++j)
                _mm512_store_si512(to + (i * kRows + j) * 16, rows[i][j]);
        }
    }
}

// `size` weights of a row, to its row of the tiles; size <= kDepth.
template <int count, class T>
void split_row(int32_t* to, const T* from, int64_t size) {
    for (int64_t k = 0; k < size; k += kColumns, to += count * kNumbers) {
        I parts[count];
        split(load(from + k, first_lanes(size - k)),
              load(from + k + 16, first_lanes(size - k - 16)), parts);
        for (int i = 0; i < count; ++i) _mm512_store_si512(to + i * kNumbers, parts[i]);
    }
}

// Whole blocks, as kernels/quant/blocks/q8_0.h has them: without a row of floats in between.
template <int count>
void split_q8_0(int32_t* to, const std::byte* from, int64_t size) {
    constexpr int64_t kBlockBytes = 34;
    for (int64_t k = 0; k < size; k += kColumns, from += kBlockBytes, to += count * kNumbers) {
        uint16_t half;
        std::memcpy(&half, from, sizeof half);
        const F scale = _mm512_cvtph_ps(_mm256_set1_epi16(static_cast<int16_t>(half)));
        const auto sixteen = [&](const std::byte* quants) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(quants));
            return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)), scale);
        };
        I parts[count];
        split(sixteen(from + 2), sixteen(from + 18), parts);
        for (int i = 0; i < count; ++i) _mm512_store_si512(to + i * kNumbers, parts[i]);
    }
}

template <int count>
void split_row(int32_t* to, const std::byte* from, Dtype dtype, int64_t size) {
    if (dtype == Dtype::f32)
        return split_row<count>(to, reinterpret_cast<const float*>(from), size);
    if (dtype == Dtype::f16)
        return split_row<count>(to, reinterpret_cast<const f16_t*>(from), size);
    if (dtype == Dtype::bf16)
        return split_row<count>(to, reinterpret_cast<const bf16_t*>(from), size);
    if (dtype == Dtype::q8_0) return split_q8_0<count>(to, from, size);
    alignas(64) float row[kDepth];
    cpu_kernels().dequantize(row, from, dtype, size);
    split_row<count>(to, row, size);
}

// Columns [k, k + depth) of `count` rows of weights as tiles {row; word of two columns}, steps as
// those of x; zeros up to a pair of tiles. Meanwhile what is needed next is requested.
template <int parts>
void pack(int32_t* to, const StoredRows& w, int64_t k, int64_t depth, int64_t count) {
    const auto bytes_of = [&](int64_t n) { return static_cast<int64_t>(row_bytes(w.dtype, n)); };
    const int64_t tile_row = round_up(depth, kColumns) / kColumns * parts * kNumbers;
    const int64_t row_size = bytes_of(w.size), begin = bytes_of(k), bytes = bytes_of(depth);
    const int64_t ahead = k + depth < w.size ? bytes : count * row_size - begin;
    const auto* rows = static_cast<const std::byte*>(w.values) + begin;
    for (int64_t n = 0; n < round_up(count, 2 * kRows); ++n) {
        int32_t* row = to + n / kRows * tile_row + n % kRows * 16;
        if (n >= count) {
            for (int64_t i = 0; i < tile_row; i += kNumbers)
                _mm512_store_si512(row + i, _mm512_setzero_si512());
            continue;
        }
        const std::byte* from = rows + n * row_size;
        for (int64_t i = 0; i < bytes; i += 64)
            _mm_prefetch(reinterpret_cast<const char*>(from + ahead + i), _MM_HINT_T1);
        split_row<parts>(row, from, w.dtype, depth);
    }
}

// Tiles 0 to 3: sums of two tiles of weights, 4 and 5, by two of x, 6 and 7, or by one.
template <bool two>
[[gnu::always_inline]] inline void multiply() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (two) {
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }
}

// A step: the smaller products first.
template <class Parts, bool two>
[[gnu::always_inline]] inline void add_step(const int32_t* w, int64_t next_w, const int32_t* x,
                                            int64_t next_x) {
    const auto load_w = [&](int i) {
        _tile_loadd(4, w + i * kNumbers, 64);
        _tile_loadd(5, w + next_w + i * kNumbers, 64);
    };
    const auto load_x = [&](int i) {
        _tile_loadd(6, x + i * kNumbers, 64);
        if constexpr (two) _tile_loadd(7, x + next_x + i * kNumbers, 64);
    };
    const auto multiply_x = [&](int i) {
        load_x(i);
        multiply<two>();
    };
    if constexpr (Parts::kWeights == 3) {
        load_w(2);
        multiply_x(0);
    }
    if constexpr (Parts::kWeights >= 2) {
        load_w(1);
        if constexpr (Parts::kX == 3) multiply_x(1);
        multiply_x(0);
    }
    load_w(0);
    if constexpr (Parts::kWeights == 1)
        multiply_x(0);
    else
        multiply<two>();
    multiply_x(1);
    if constexpr (Parts::kX == 3) multiply_x(2);
}

// y (rows, two tiles of weights) = the products of these with one or two tiles of x, or adds them.
template <class Parts, bool two>
void multiply_block(float* y, int64_t ldy, int64_t rows, const int32_t* w, int64_t next_w,
                    const int32_t* x, int64_t next_x, int64_t steps, bool adds) {
    alignas(64) float sums[2][2][kNumbers];  // {tile of x; tile of weights}: (weights, x)
    // g++ 12 does not know that tiles are loaded from memory.
    asm volatile("" ::: "memory");
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < steps; ++i)
        add_step<Parts, two>(w + i * Parts::kWeights * kNumbers, next_w,
                             x + i * Parts::kX * kNumbers, next_x);
    _tile_stored(0, sums[0][0], 64);
    _tile_stored(2, sums[0][1], 64);
    if constexpr (two) {
        _tile_stored(1, sums[1][0], 64);
        _tile_stored(3, sums[1][1], 64);
    }
    asm volatile("" ::: "memory");
    for (int64_t tile = 0; tile < (two ? 2 : 1); ++tile)
        for (int64_t n = 0; n < 2; ++n) {
            I block[kRows];
            for (int64_t i = 0; i < kRows; ++i)
                block[i] = _mm512_load_si512(sums[tile][n] + i * 16);
            transpose(block);
            const int64_t count = std::min(kRows, rows - tile * kRows);
            for (int64_t i = 0; i < count; ++i) {
                float* to = y + (tile * kRows + i) * ldy + n * kRows;
                const F sum = _mm512_castsi512_ps(block[i]);
                _mm512_storeu_ps(to, adds ? _mm512_add_ps(_mm512_loadu_ps(to), sum) : sum);
            }
        }
}

int64_t arranged_bytes(int64_t size, Dtype weights) {
    return with_split(weights, [&](auto split) {
        return round_up(size, kColumns) / kColumns * split.kX * kNumbers * int64_t{4};
    });
}

int64_t scratch_bytes(Dtype weights) {
    return with_split(weights, [](auto split) {
        return kSplitOutputs / kRows * kDepth / kColumns * split.kWeights * kNumbers * int64_t{4};
    });
}

void arrange(std::byte* to, const float* x, int64_t t_size, int64_t size, Dtype weights) {
    with_split(weights, [&](auto split) {
        arrange_parts<split.kX>(reinterpret_cast<int32_t*>(to), x, t_size, size);
    });
}

template <class Parts>
void multiply_all(float* y, int64_t ldy, const int32_t* x, int64_t t_size, const StoredRows& w,
                  int64_t count, int32_t* packed) {
    const int64_t next_x = round_up(w.size, kColumns) / kColumns * Parts::kX * kNumbers;
    for (int64_t k = 0; k < w.size; k += kDepth, x += kDepth / kColumns * Parts::kX * kNumbers) {
        const int64_t depth = std::min(kDepth, w.size - k);
        const int64_t steps = round_up(depth, kColumns) / kColumns;
        const int64_t next_w = steps * Parts::kWeights * kNumbers;
        pack<Parts::kWeights>(packed, w, k, depth, count);
        for (int64_t t = 0; t < t_size; t += 2 * kRows)
            for (int64_t n = 0; n < count; n += 2 * kRows) {
                const auto multiply_pair =
                    t + kRows < t_size ? multiply_block<Parts, true> : multiply_block<Parts, false>;
                multiply_pair(y + t * ldy + n, ldy, t_size - t, packed + n / kRows * next_w, next_w,
                              x + t / kRows * next_x, next_x, steps, k > 0);
            }
    }
}

void products(float* y, int64_t ldy, const std::byte* x, int64_t t_size, const StoredRows& w,
              int64_t count, std::byte* scratch) {
    _tile_loadconfig(&kShapes);
    with_split(w.dtype, [&](auto split) {
        multiply_all<decltype(split)>(y, ldy, reinterpret_cast<const int32_t*>(x), t_size, w, count,
                                      reinterpret_cast<int32_t*>(scratch));
    });
    _tile_release();
}

}  // namespace

extern const SplitKernels kAmxSplits;
const SplitKernels kAmxSplits = {.arranged_bytes = arranged_bytes,
                                 .scratch_bytes = scratch_bytes,
                                 .arrange = arrange,
                                 .products = products};

}  // namespace hark
