// For processors with AVX-512, VNNI and AMX; compiled with their flags.
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/quant/cpu/tile_panels.h"
#include "kernels/quant/cpu/tile_shapes.h"

namespace hark {
namespace {

// Tiles 0 and 1: int32 sums of the high and low bytes (weights, rows of x). Tile 2: weights
// (weights, bytes of a group). Tiles 3 and 4: high and low bytes of x (four columns, rows of x).
template <int shared>
constexpr TileShapes kShapes = [] {
    TileShapes shapes;
    for (int tile = 0; tile < 5; ++tile) {
        shapes.row_bytes[tile] = tile == 2 ? shared : 64;
        shapes.rows[tile] = tile < 3 ? kTileRows : shared / 4;
    }
    return shapes;
}();

// sums (weights, rows of x) += one lane of a span: its group's products, times the scales.
// Requests the bytes of as many weights from `next` on.
template <class Bytes>
[[gnu::always_inline]] inline void add_group(F (&sums)[kTileRows], const TileWeights& w,
                                             const TileInputs& x, int64_t span, int lane,
                                             int64_t group, int32_t* high, int32_t* low,
                                             const uint8_t* next) {
    const int64_t tile = group * Bytes::kShared * kTileRows;
    _tile_zero(0);
    _tile_zero(1);
    _tile_loadd(2, w.quants + group * w.group_step, static_cast<size_t>(w.row_step));
    _tile_loadd(3, x.high + tile, 64);
    _tile_loadd(4, x.low + tile, 64);
    _tile_dpbssd(0, 2, 3);
    _tile_dpbssd(1, 2, 4);
    _tile_stored(0, high, 64);
    _tile_stored(1, low, 64);
    request<Bytes>(next);  // not before: tiles would wait for the same buffers
    const float* scales = w.scales + span * kTileRows * kLanes + lane;
    const float* mins = w.mins + span * kTileRows * kLanes + lane;
    F of_x = _mm512_setzero_ps();
    if constexpr (Bytes::kHasMin)
        of_x = _mm512_cvtepi32_ps(_mm512_load_si512(x.sums + (span * kLanes + lane) * kTileRows));
#pragma GCC unroll 16
    for (int n = 0; n < kTileRows; ++n) {
        const I total = _mm512_add_epi32(_mm512_slli_epi32(_mm512_load_si512(high + n * 16), 8),
                                         _mm512_load_si512(low + n * 16));
        sums[n] =
            _mm512_fmadd_ps(_mm512_set1_ps(scales[n * kLanes]), _mm512_cvtepi32_ps(total), sums[n]);
        if constexpr (Bytes::kHasMin)
            sums[n] = _mm512_fmadd_ps(_mm512_set1_ps(mins[n * kLanes]), of_x, sums[n]);
    }
}

struct Amx {
    static constexpr bool kSignedWeights = true, kReadsBlocks = true;

    template <class Bytes>
    static void begin() {
        _tile_loadconfig(&kShapes<Bytes::kShared>);
    }
    static void end() { _tile_release(); }

    template <class Bytes>
    static void sum_lane(float (&to)[kTileRows][16], const TileWeights& w, const TileInputs& x,
                         const LaneGroups& groups, const uint8_t* next) {
        alignas(64) int32_t high[2][kTileRows * 16], low[2][kTileRows * 16];
        // g++ 12 does not know that tiles are loaded from memory.
        asm volatile("" ::: "memory");
        F sums[kTileRows];
#pragma GCC unroll 16
        for (F& sum : sums) sum = _mm512_setzero_ps();
        for (int64_t span = 0; span < groups.spans; ++span, next += Bytes::kBytes)
            add_group<Bytes>(sums, w, x, span, groups.lane, span * kLanes + groups.first,
                             high[span % 2], low[span % 2], next);
#pragma GCC unroll 16
        for (int n = 0; n < kTileRows; ++n) _mm512_store_ps(to[n], sums[n]);
    }
};

}  // namespace

// Asks Linux for the state of tiles, for all threads (the kernel's Documentation/arch/x86/xstate).
bool may_use_tiles() {
    constexpr int kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

extern const TileKernels kAmxTiles;
const TileKernels kAmxTiles = {
    .fewest_rows = 5, .most_rows = 48, .arrange = arrange, .products = products<Amx>};

}  // namespace hark
