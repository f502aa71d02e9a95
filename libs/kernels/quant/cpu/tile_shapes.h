// The configuration of AMX's tiles.
#pragma once

#include <cstdint>

namespace hark {

// Rows and bytes per row of tiles 0 to 7. Their layout is in Intel's manual, volume 1, chapter 18.
// g++ 12 takes only literals as tiles.
struct alignas(64) TileShapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

}  // namespace hark
