// Products of rows with quantised weights in bytes, by VNNI instructions and by AMX: the quants of
// a group of weights times the two bytes of 16-bit activations.
//
//     y = sum over the groups of scale * (256 * sum of q high + sum of q low) + min * sum of x
//
// with w = scale * q + min and x = 256 * high + low. A group is the weights with one scale; its
// sums are exact. Both kernels add the groups of a row in one order (byte_blocks.h), so they give
// the same bits.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace hark {

// Number of groups that the sums of a row have room for: whole spans of 16 groups of at least 16
// weights.
constexpr int64_t room_for_groups(int64_t size) { return (size + 255) / 256 * 16; }

// Activations x = scales[row] * (256 * high + low), (t, size).
struct ByteInputs {
    int8_t *high = nullptr, *low = nullptr;  // (t, size)
    // (t, room_for_groups(size)): of the groups, for types without minima times what their unsigned
    // quants are too large, negative
    int32_t* sums = nullptr;
    const float* scales = nullptr;  // (t)
};

// Largest magnitude of 16-bit activations: `high` has to fit a signed byte.
inline constexpr int32_t kWideRange = 127 * 256 + 127;

// y[t * ldy + n] = sum over k of x[t][k] * w[n][k], for n in [0, count) and t in [0, t_size); w
// (count, size) in blocks. The order of a sum depends neither on t_size nor on count.
struct ByteKernels {
    // Whether the others are for rows of `size` weights of this type.
    bool (*has)(Dtype dtype, int64_t size);
    // Fills row t of the inputs from 16-bit values.
    void (*split)(const ByteInputs& to, int64_t t, const int16_t* values, Dtype dtype,
                  int64_t size);
    void (*products)(float* y, int64_t ldy, const ByteInputs& x, int64_t t_size,
                     const uint8_t* blocks, Dtype dtype, int64_t size, int64_t count);
};

// Rows of activations, and of weights, that a tile holds.
inline constexpr int64_t kTileRows = 16;

// Activations of kTileRows rows for tiles: the bytes of four neighbouring columns are together,
// row by row. Absent rows are zero.
struct TileInputs {
    int8_t *high = nullptr, *low = nullptr;  // (size / 4, kTileRows, 4)
    int32_t* sums = nullptr;                 // (room_for_groups(size), kTileRows): ByteInputs' own
};

// Of a tile's rows of weights: their bytes, and the scales and minima of the groups.
constexpr int64_t tile_scratch_bytes(int64_t size) {
    return kTileRows * (size + 2 * room_for_groups(size) * int64_t{sizeof(float)});
}

// The same by tiles, for the types that ByteKernels::has().
struct TileKernels {
    // From how many rows of x on they are faster than ByteKernels, and up to how many they are
    // faster than PanelKernels.
    int64_t fewest_rows, most_rows;
    // Arranges rows [t, t + t_size) of x, t_size up to kTileRows.
    void (*arrange)(const TileInputs& to, const ByteInputs& x, int64_t t, int64_t t_size,
                    int64_t size);
    // count is at most kPanelOutputs. x: one for every kTileRows rows. scales (t_size). Every row
    // of y has room for kPanelOutputs, and there are whole tiles of rows. scratch:
    // tile_scratch_bytes(size) from a multiple of 64 on.
    void (*products)(float* y, int64_t ldy, const TileInputs* x, const float* scales,
                     int64_t t_size, const uint8_t* blocks, Dtype dtype, int64_t size,
                     int64_t count, uint8_t* scratch);
};

}  // namespace hark
