// Rounding to bf16 by chance: the arithmetic of round_randomly(), the same bits on the CPU and a
// GPU.
#pragma once

#include <cstdint>

#include "core/both.h"

namespace hark {

// Sixteen random bits for each of the values 4 i to 4 i + 3, the first one's in the lowest bits: a
// generator by counters. Source: Steele, Lea & Flood 2014, figure 17 (SplitMix64).
HARK_BOTH uint64_t chances_of(uint64_t start, uint64_t i) {
    uint64_t z = start + i * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// The bf16 of an f32, both as bits: what is cut off carries over as often as it is large. chance:
// below 2^16.
HARK_BOTH uint16_t rounded_by(uint32_t bits, uint32_t chance) {
    const bool finite = (bits & 0x7f800000) != 0x7f800000;
    const uint32_t quiet = (bits & 0x007fffff) ? 0x00400000 : 0;  // no NaN becomes infinity
    return static_cast<uint16_t>((finite ? bits + chance : bits | quiet) >> 16);
}

}  // namespace hark
