// What the structures of quantised blocks share to make blocks from floats, on the CPU alone.
#pragma once

#include <cstdint>

namespace hark {

// Stores a scale or a minimum as f16. Throws Error where it is not finite in it.
void store_half(uint8_t* to, float value);
// The value as f16 holds it. Throws as store_half() does.
float as_half(float value);
// The reciprocal for computing quants; 0 if the scale is so small that it is 0 in f16.
float inverse_scale(float scale);

}  // namespace hark
