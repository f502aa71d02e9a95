// Stochastic rounding to bf16: the arithmetic of stochastic_round(), with the same bits on the CPU
// and a GPU. Values 4 i to 4 i + 3 use sixteen bits each of split_mix(start, i), the first value
// the lowest.
#pragma once

#include <cstdint>

#include "core/random.h"

namespace hark {

// The bf16 of an f32, both as bits: rounds up with the probability of the cut part. chance: below
// 2^16.
HARK_HOST_DEVICE uint16_t rounded_by(uint32_t bits, uint32_t chance) {
    const bool finite = (bits & 0x7f800000) != 0x7f800000;
    const uint32_t quiet = (bits & 0x007fffff) ? 0x00400000 : 0;  // no NaN becomes infinity
    return static_cast<uint16_t>((finite ? bits + chance : bits | quiet) >> 16);
}

}  // namespace hark
