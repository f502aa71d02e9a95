// For processors with AVX-512 and VNNI, without AMX; compiled with their flags.
#include "kernels/quant/cpu/tile_panels.h"

namespace hark {
namespace {

// Of weights: their sums of high and low bytes, and of products, are in registers.
constexpr int kRowsAtOnce = 8;

// Four quants of a row.
inline I four_quants(const uint8_t* from) {
    int32_t four;
    std::memcpy(&four, from, sizeof four);
    return _mm512_set1_epi32(four);
}

// sums (weights, rows of x) += one group's products, times the scales. Lanes are rows of x.
template <class Bytes>
[[gnu::always_inline]] inline void add_group(F (&sums)[kRowsAtOnce], const uint8_t* quants,
                                             const int8_t* x_high, const int8_t* x_low,
                                             const float* scales, const float* mins, I of_x) {
    I high[kRowsAtOnce], low[kRowsAtOnce];
#pragma GCC unroll 8
    for (int n = 0; n < kRowsAtOnce; ++n) high[n] = low[n] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int k = 0; k < Bytes::kShared; k += 4) {
        const I of_high = load(x_high + k * kTileRows), of_low = load(x_low + k * kTileRows);
#pragma GCC unroll 8
        for (int n = 0; n < kRowsAtOnce; ++n) {
            const I four = four_quants(quants + n * Bytes::kShared + k);
            high[n] = _mm512_dpbusd_epi32(high[n], four, of_high);
            low[n] = _mm512_dpbusd_epi32(low[n], four, of_low);
        }
    }
#pragma GCC unroll 8
    for (int n = 0; n < kRowsAtOnce; ++n) {
        I total = _mm512_add_epi32(_mm512_slli_epi32(high[n], 8), low[n]);
        if constexpr (!Bytes::kHasMin) total = _mm512_add_epi32(total, of_x);
        sums[n] =
            _mm512_fmadd_ps(_mm512_set1_ps(scales[n * kLanes]), _mm512_cvtepi32_ps(total), sums[n]);
        if constexpr (Bytes::kHasMin)
            sums[n] = _mm512_fmadd_ps(_mm512_set1_ps(mins[n * kLanes]), _mm512_cvtepi32_ps(of_x),
                                      sums[n]);
    }
}

struct Vnni {
    static constexpr bool kSignedWeights = false, kReadsBlocks = false;

    template <class Bytes>
    static void begin() {}
    static void end() {}

    template <class Bytes>
    static void sum_lane(float (&to)[kTileRows][16], const TileWeights& w, const TileInputs& x,
                         const LaneGroups& groups, const uint8_t* next) {
        for (int row = 0; row < kTileRows; row += kRowsAtOnce) {
            F sums[kRowsAtOnce];
#pragma GCC unroll 8
            for (F& sum : sums) sum = _mm512_setzero_ps();
            for (int64_t span = 0; span < groups.spans; ++span) {
                if (row == 0) request<Bytes>(next + span * Bytes::kBytes);
                const int64_t tile = (span * kLanes + groups.first) * Bytes::kShared * kTileRows;
                const int64_t factors = (span * kTileRows + row) * kLanes + groups.lane;
                add_group<Bytes>(sums, w.quants + tile + row * Bytes::kShared, x.high + tile,
                                 x.low + tile, w.scales + factors, w.mins + factors,
                                 load(x.sums + (span * kLanes + groups.lane) * kTileRows));
            }
#pragma GCC unroll 8
            for (int n = 0; n < kRowsAtOnce; ++n) _mm512_store_ps(to[row + n], sums[n]);
        }
    }
};

}  // namespace

extern const TileKernels kVnniTiles;
const TileKernels kVnniTiles = {
    .fewest_rows = 7, .most_rows = 64, .arrange = arrange, .products = products<Vnni>};

}  // namespace hark
