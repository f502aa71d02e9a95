// Products by tiles of kTileRows rows of weights and as many of activations, for processors with
// AVX-512 and VNNI. What amx_tiles.cc and vnni_tiles.cc share; each compiles it with its own flags,
// so all names are local to the file.
//
// A Unit multiplies the groups of one lane (byte_blocks.h):
//     kSignedWeights    whether its weights are signed: kOffset is subtracted. Unsigned ones need
//                       the sums of x for types without minima.
//     kReadsBlocks      whether it takes quants that are signed bytes from the blocks
//     begin(), end()    around the products of one call
//     sum_lane()        sums (weights, rows of x) of a lane's groups, times their scales
#pragma once

#include <algorithm>

#include "kernels/cpu/cpu.h"
#include "kernels/quant/cpu/byte_blocks.h"
#include "kernels/quant/cpu/transpose.h"

namespace hark {
namespace {

// A group is a tile: {four columns; row; column}.
void arrange_bytes(int8_t* to, const int8_t* rows, int64_t t_size, int64_t size) {
    for (int64_t k = 0; k < size; k += 64) {
        I columns[16];
        for (int64_t t = 0; t < kTileRows; ++t)
            columns[t] = t < t_size ? load(rows + t * size + k) : _mm512_setzero_si512();
        transpose(columns);
        for (int64_t i = 0; i < 16; ++i)
            _mm512_store_si512(to + (k / 4 + i) * kTileRows * 4, columns[i]);
    }
}

void arrange(const TileInputs& to, const ByteInputs& x, int64_t t, int64_t t_size, int64_t size) {
    arrange_bytes(to.high, x.high + t * size, t_size, size);
    arrange_bytes(to.low, x.low + t * size, t_size, size);
    const int64_t groups = room_for_groups(size);
    for (int64_t g = 0; g < groups; ++g)
        for (int64_t i = 0; i < kTileRows; ++i)
            to.sums[g * kTileRows + i] = i < t_size ? x.sums[(t + i) * groups + g] : 0;
}

// kTileRows rows of weights: the quants of a group, {row; weight}, whose rows are row_step bytes
// apart and whose groups group_step; the scales and the minima, span by span, {row; lane}.
struct TileWeights {
    const uint8_t* quants;
    int64_t row_step, group_step;
    const float *scales, *mins;
};

// Memory for them.
struct Unpacked {
    uint8_t* quants;
    float *scales, *mins;
};

// The groups of a lane: first, first + kLanes, ..., one per span.
struct LaneGroups {
    int lane;
    int64_t first, spans;
};

template <class Bytes>
constexpr int64_t span_count(int64_t size) {
    return (size + Bytes::kParts * 64 - 1) / (Bytes::kParts * 64);
}

template <class Bytes>
Unpacked unpacked_at(uint8_t* scratch, int64_t size) {
    auto* scales = reinterpret_cast<float*>(scratch + kTileRows * size);
    return {scratch, scales, scales + span_count<Bytes>(size) * kTileRows * kLanes};
}

// Part `part` of a row's span, to the tiles of its groups.
template <class Bytes, class Unit>
void store_quants(uint8_t* tiles, int64_t row, const uint8_t* span, int part) {
    constexpr int kShared = Bytes::kShared;
    I quants = Bytes::quants(span, part);
    if constexpr (Unit::kSignedWeights)
        quants = _mm512_sub_epi8(quants, _mm512_set1_epi8(static_cast<char>(Bytes::kOffset)));
    uint8_t* to = tiles + part * 64 * kTileRows + row * kShared;
    const auto tile = [&](int i) { return to + i * kTileRows * kShared; };
    if constexpr (kShared == 32) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(tile(0)), _mm512_castsi512_si256(quants));
        _mm256_store_si256(reinterpret_cast<__m256i*>(tile(1)),
                           _mm512_extracti64x4_epi64(quants, 1));
    } else {
        const auto store = [&](int i, __m128i quarter) {
            _mm_store_si128(reinterpret_cast<__m128i*>(tile(i)), quarter);
        };
        store(0, _mm512_castsi512_si128(quants));
        store(1, _mm512_extracti32x4_epi32(quants, 1));
        store(2, _mm512_extracti32x4_epi32(quants, 2));
        store(3, _mm512_extracti32x4_epi32(quants, 3));
    }
}

// `count` rows of weights; absent ones repeat the last.
template <class Bytes, class Unit>
TileWeights unpack(const Unpacked& to, const uint8_t* blocks, int64_t size, int64_t count) {
    constexpr int64_t kSpan = Bytes::kParts * 64;
    const int64_t row_size = bytes_of_row<Bytes>(size);
    const bool in_blocks = Unit::kReadsBlocks && Bytes::kSignedBytesAt > 0 && count >= kTileRows;
    for (int64_t row = 0; row < kTileRows; ++row) {
        const uint8_t* from = blocks + std::min(row, count - 1) * row_size;
        for (int64_t k = 0, s = 0; k < size; k += kSpan, ++s, from += Bytes::kBytes) {
            const int parts = static_cast<int>(std::min(kSpan, size - k) / 64);
            if (!in_blocks) {
                request<Bytes>(from + kBytesAhead);
                for (int i = 0; i < parts; ++i)
                    store_quants<Bytes, Unit>(to.quants + k * kTileRows, row, from, i);
            }
            const int64_t place = (s * kTileRows + row) * kLanes;
            const auto [scales, mins] = Bytes::factors(from, parts);
            _mm512_store_ps(to.scales + place, scales);
            if constexpr (Bytes::kHasMin) _mm512_store_ps(to.mins + place, mins);
        }
    }
    if (in_blocks)
        return {blocks + Bytes::kSignedBytesAt, row_size, Bytes::kBytes / kLanes, to.scales,
                to.mins};
    return {to.quants, Bytes::kShared, Bytes::kShared * kTileRows, to.scales, to.mins};
}

// y (kTileRows of x, kTileRows of weights) = their products. Meanwhile the next panel's bytes come
// into the second cache.
template <class Bytes, class Unit>
void multiply(float* y, int64_t ldy, const TileWeights& w, const TileInputs& x, F scales,
              int64_t size, const uint8_t* next) {
    alignas(64) float partial[kLanes][kTileRows][16];
    const int64_t groups = size / Bytes::kShared;
    for (int lane = 0; lane < kLanes; ++lane) {
        const int64_t first = kGroupOfLane<Bytes::kShared>[static_cast<size_t>(lane)];
        const int64_t spans = std::max<int64_t>((groups - first + kLanes - 1) / kLanes, 0);
        Unit::template sum_lane<Bytes>(partial[lane], w, x, {lane, first, spans}, next);
        next += spans * Bytes::kBytes;
    }
    I rows[kTileRows];
    for (int n = 0; n < kTileRows; ++n) {
        F lanes[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) lanes[i] = _mm512_load_ps(partial[i][n]);
#pragma GCC unroll 4
        for (int distance = kLanes / 2; distance > 0; distance /= 2)
#pragma GCC unroll 8
            for (int i = 0; i < distance; ++i)
                lanes[i] = _mm512_add_ps(lanes[i], lanes[i + distance]);
        rows[n] = _mm512_castps_si512(_mm512_mul_ps(lanes[0], scales));
    }
    transpose(rows);
    for (int t = 0; t < kTileRows; ++t) _mm512_storeu_si512(y + t * ldy, rows[t]);
}

template <class Unit>
void products(float* y, int64_t ldy, const TileInputs* x, const float* scales, int64_t t_size,
              const uint8_t* blocks, Dtype dtype, int64_t size, int64_t count, uint8_t* scratch) {
    with_bytes(dtype, [&](auto type) {
        using Bytes = typename decltype(type)::type;
        const Unpacked memory = unpacked_at<Bytes>(scratch, size);
        const int64_t row_size = bytes_of_row<Bytes>(size);
        Unit::template begin<Bytes>();
        for (int64_t n = 0; n < count; n += kTileRows) {
            const uint8_t* panel = blocks + n * row_size;
            const TileWeights w = unpack<Bytes, Unit>(memory, panel, size, count - n);
            for (int64_t t = 0; t < t_size; t += kTileRows) {
                const auto rows = static_cast<unsigned>(std::min(kTileRows, t_size - t));
                const F of_rows =
                    _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << rows) - 1), scales + t);
                multiply<Bytes, Unit>(y + t * ldy + n, ldy, w, x[t / kTileRows], of_rows, size,
                                      panel + kTileRows * row_size);
            }
        }
        Unit::end();
    });
}

}  // namespace
}  // namespace hark
