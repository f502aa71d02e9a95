// For processors with AVX-512 and VNNI; compiled with their flags.
#include "kernels/quant/cpu/panel_products.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "kernels/quant/block_types.h"
#include "kernels/quant/cpu/transpose.h"

namespace hark {
namespace {

using F = __m512;
using I = __m512i;

constexpr int kLanes = 16;
constexpr int kVectors = kPanelOutputs / kLanes;
constexpr int kTileRows = 7;  // of x: 28 of 32 registers hold sums

constexpr int kSpan = 256;      // columns that are unpacked at a time
constexpr int kRowBytes = 320;  // room for a row's bytes of them

// A span of 16 rows: the bytes of its quants, and the same with each four bytes of all rows
// together. Its alignment tells the place of an address in the first row.
struct alignas(512) Rows {
    uint8_t bytes[kLanes][kRowBytes];
    uint8_t lanes[kRowBytes / 4][kLanes * 4];
};

// Four bytes of each of 16 rows, as Block::quant() reads them (kernels/quant/block_types.h) from
// the first one of Rows.
struct RowBytes {
    I x;

    static RowBytes bytes(const uint8_t* from) {
        const auto place = reinterpret_cast<uintptr_t>(from) % alignof(Rows);
        const auto* rows = reinterpret_cast<const Rows*>(from - place);
        return {_mm512_load_si512(rows->lanes[place / 4])};
    }
    static RowBytes signed_bytes(const uint8_t* from) { return bytes(from); }
    static RowBytes four_bits(const uint8_t* from, int g, int j) {
        return bytes(from + j) >> g * 4 & 15;
    }
    // Bits j to j + 3 of 16 move to bit 4 of a byte each.
    static RowBytes fifth_bit(const uint8_t* from, int g, int j) {
        const I four = _mm512_and_si512((bytes(from) >> (g * 16 + j)).x, _mm512_set1_epi32(15));
        const I apart = _mm512_mullo_epi32(four, _mm512_set1_epi32(0x00204081));
        return RowBytes{_mm512_slli_epi32(apart, 4)} & 16;
    }
    template <class Table>
    static RowBytes lookup(RowBytes from) {
        const auto a = static_cast<int64_t>(Table::kLower), b = static_cast<int64_t>(Table::kUpper);
        const I table = _mm512_broadcast_i32x4(_mm_set_epi64x(b, a));
        return {_mm512_shuffle_epi8(table, from.x)};
    }

    // Bits that shift into another byte have to be masked.
    RowBytes operator>>(int n) const { return {_mm512_srli_epi32(x, static_cast<unsigned>(n))}; }
    RowBytes operator<<(int n) const { return {_mm512_slli_epi32(x, static_cast<unsigned>(n))}; }
    RowBytes operator&(int mask) const {
        return {_mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(mask)))};
    }
    RowBytes operator|(RowBytes other) const { return {_mm512_or_si512(x, other.x)}; }
    RowBytes operator-(int n) const {
        return {_mm512_sub_epi8(x, _mm512_set1_epi8(static_cast<char>(n)))};
    }
};

// A group of neighbouring weights with one scale, of all rows of a panel: pairs of 16-bit integers,
// pair by pair, then the scales, then the minima; 64 bytes per vector.
template <int values, bool has_min>
struct Group {
    static constexpr int kValues = values;
    static constexpr bool kHasMin = has_min;
    static constexpr int kScales = kValues / 2 * kVectors * 64;
    static constexpr int kMins = kScales + kVectors * 64;
    static constexpr int kBytes = kMins + (kHasMin ? kVectors * 64 : 0);
};
template <class Block>
using GroupOf = Group<Block::kShared, Block::kHasMin>;

// The bytes of a block before its quants that Rows leaves out, so that every quant's place in a row
// is a multiple of four.
template <class Block>
constexpr int kSkipped = Block::kValues == 32 ? Block::kBytes % 4 : 0;
template <class Block>
constexpr int kKept = Block::kBytes - kSkipped<Block>;
// The distance of blocks in Rows.
template <class Block>
constexpr int kStride = (kKept<Block> + 3) / 4 * 4;

// `count` blocks of each row. Meanwhile what is `ahead` bytes after them is requested into the
// second cache.
template <class Block>
void take_rows(Rows& to, const uint8_t* const (&from)[kLanes], int count, int64_t ahead) {
    constexpr int kMost = kSpan / Block::kValues;
    static_assert(kMost * kStride<Block> <= kRowBytes);
    for (int row = 0; row < kLanes; ++row) {
        for (int i = 0; i < kMost * Block::kBytes; i += 64)
            _mm_prefetch(reinterpret_cast<const char*>(from[row] + ahead) + i, _MM_HINT_T1);
        for (int i = 0; i < count; ++i)
            std::memcpy(to.bytes[row] + i * kStride<Block>,
                        from[row] + i * Block::kBytes + kSkipped<Block>, kKept<Block>);
    }
    for (int i = 0; i < kMost * kStride<Block>; i += 64) {
        I words[kLanes];
#pragma GCC unroll 16
        for (int row = 0; row < kLanes; ++row) words[row] = _mm512_load_si512(to.bytes[row] + i);
        transpose(words);
#pragma GCC unroll 16
        for (int j = 0; j < kLanes; ++j) _mm512_store_si512(to.lanes[i / 4 + j], words[j]);
    }
}

// The group that begins with value `first` of the span in `rows`, which `from` points to.
template <class Block>
void unpack_group(uint8_t* to, const Rows& rows, const uint8_t* const (&from)[kLanes], int first) {
    using To = GroupOf<Block>;
    const int number = first / Block::kValues;
    const uint8_t* block = rows.bytes[0] + number * kStride<Block> - kSkipped<Block>;
    first %= Block::kValues;
    // Bytes 0 and 1, or 2 and 3, of a lane to the upper halves of its two words.
    const I pair = _mm512_broadcast_i32x4(
        _mm_set_epi8(13, -1, 12, -1, 9, -1, 8, -1, 5, -1, 4, -1, 1, -1, 0, -1));
    const I next = _mm512_broadcast_i32x4(
        _mm_set_epi8(15, -1, 14, -1, 11, -1, 10, -1, 7, -1, 6, -1, 3, -1, 2, -1));
    constexpr int kPair = kVectors * 64;
    for (int i = 0; i < To::kValues; i += 4) {
        const I quants = Block::template quant<RowBytes>(block, (first + i) / Block::kGroup,
                                                         (first + i) % Block::kGroup)
                             .x;
        const auto store = [&](int place, I bytes) {
            _mm512_store_si512(to + place * kPair, _mm512_srai_epi16(bytes, 8));
        };
        store(i / 2, _mm512_shuffle_epi8(quants, pair));
        store(i / 2 + 1, _mm512_shuffle_epi8(quants, next));
    }
    const int g = first / Block::kGroup;
    auto* scales = reinterpret_cast<float*>(to + To::kScales);
    auto* mins = reinterpret_cast<float*>(to + To::kMins);
    for (int row = 0; row < kLanes; ++row) {
        const uint8_t* stored = from[row] + number * Block::kBytes;
        scales[row] = Block::scale(stored, g);
        if (Block::kHasMin) mins[row] = Block::min(stored, g);
    }
}

// `depth` columns of `count` rows; further rows repeat the last one.
template <class Block>
void unpack_panel(uint8_t* panel, const uint8_t* blocks, int64_t row_size, int64_t count,
                  int64_t depth) {
    using To = GroupOf<Block>;
    Rows rows;
    for (int v = 0; v < kVectors; ++v) {
        uint8_t* to = panel + v * 64;
        for (int64_t k = 0; k < depth; k += kSpan) {
            const auto width = static_cast<int>(std::min<int64_t>(kSpan, depth - k));
            const uint8_t* from[kLanes];
            for (int row = 0; row < kLanes; ++row)
                from[row] = blocks + k / Block::kValues * Block::kBytes +
                            std::min<int64_t>(v * kLanes + row, count - 1) * row_size;
            take_rows<Block>(rows, from, width / Block::kValues, kPanelOutputs * row_size);
            for (int i = 0; i < width; i += To::kValues, to += To::kBytes)
                unpack_group<Block>(to, rows, from, i);
        }
    }
}

I two_values(const int16_t* from) {
    int32_t both;
    std::memcpy(&both, from, sizeof both);
    return _mm512_set1_epi32(both);
}

// y = the products of T rows of x, (T, size), with a panel of `depth` columns; or adds to y.
// group_sums (T, size / Group::kValues).
template <class Group, int T>
void panel_tile(float* y, int64_t ldy, const int16_t* x, const float* scales,
                const float* group_sums, int64_t size, const uint8_t* panel, int64_t depth,
                bool adds) {
    F sums[T][kVectors];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[t][v] = _mm512_setzero_ps();
    for (int64_t k = 0; k < depth; k += Group::kValues, panel += Group::kBytes) {
        I totals[T][kVectors];
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t)
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) totals[t][v] = _mm512_setzero_si512();
#pragma GCC unroll 16
        for (int p = 0; p < Group::kValues / 2; ++p) {
            I weights[kVectors];
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v)
                weights[v] = _mm512_load_si512(panel + (p * kVectors + v) * 64);
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t) {
                const I values = two_values(x + t * size + k + 2 * p);
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v)
                    totals[t][v] = _mm512_dpwssd_epi32(totals[t][v], weights[v], values);
            }
        }
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
            const F scale = _mm512_load_ps(panel + Group::kScales + v * 64);
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t)
                sums[t][v] = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(totals[t][v]), sums[t][v]);
            if constexpr (Group::kHasMin) {
                const F min = _mm512_load_ps(panel + Group::kMins + v * 64);
#pragma GCC unroll 8
                for (int t = 0; t < T; ++t) {
                    const float of_x = group_sums[(t * size + k) / Group::kValues];
                    sums[t][v] = _mm512_fmadd_ps(min, _mm512_set1_ps(of_x), sums[t][v]);
                }
            }
        }
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
            float* to = y + t * ldy + v * kLanes;
            const F before = adds ? _mm512_loadu_ps(to) : _mm512_setzero_ps();
            _mm512_storeu_ps(to, _mm512_fmadd_ps(sums[t][v], _mm512_set1_ps(scales[t]), before));
        }
}

// Calls tile(std::integral_constant<int, T>, t) for all rows, kTileRows at a time.
template <class Tile, int... T>
void in_tiles(int64_t t_size, const Tile& tile, std::integer_sequence<int, T...>) {
    int64_t t = 0;
    for (; t + kTileRows <= t_size; t += kTileRows)
        tile(std::integral_constant<int, kTileRows>(), t);
    ((t_size - t == T + 1 ? tile(std::integral_constant<int, T + 1>(), t) : void()), ...);
}

void products(float* y, int64_t ldy, const IntegerInputs& x, int64_t t_size, const uint8_t* blocks,
              Dtype dtype, int64_t size, int64_t count, uint8_t* scratch) {
    with_block_type(dtype, [&](auto type) {
        using Block = decltype(type);
        const int64_t row_size = size / Block::kValues * Block::kBytes;
        for (int64_t k = 0; k < size; k += kPanelDepth) {
            const int64_t depth = std::min(kPanelDepth, size - k);
            unpack_panel<Block>(scratch, blocks + k / Block::kValues * Block::kBytes, row_size,
                                count, depth);
            const auto tile = [&](auto rows, int64_t t) {
                const int64_t at = t * size + k;
                const float* sums = Block::kHasMin ? x.sums + at / Block::kShared : nullptr;
                panel_tile<GroupOf<Block>, rows()>(y + t * ldy, ldy, x.values + at, x.scales + t,
                                                   sums, size, scratch, depth, k > 0);
            };
            in_tiles(t_size, tile, std::make_integer_sequence<int, kTileRows - 1>());
        }
    });
}

}  // namespace

extern const PanelKernels kVnniPanels;
const PanelKernels kVnniPanels = {.products = products};

}  // namespace hark
