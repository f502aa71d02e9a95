// Rotary positions on the CPU.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace hark {

// Throws Error that begins with `op` unless the rope's frequencies fit heads of d channels.
void check_rope(const char* op, const Rope& rope, int64_t d);

// cos and sin of position * frequencies, times the rope's scale: (T, R) with R / 2 cosines first.
// Nothing if there are no frequencies.
void fill_turns(float* turns, const int32_t* position, int64_t rows, const Rope& rope);

// Turns one head of one row, in place. turns (R): of the row; half: R / 2. direction: 1, or -1 for
// the transpose.
void turn(float* x, const float* turns, int64_t half, float direction = 1);

}  // namespace hark
