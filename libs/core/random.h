// A seeded generator with the same numbers on every machine.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace hark {

// Number i, from 1 on, of the generator SplitMix64 that has begun at `start`.
// Source: Steele, Lea & Flood 2014, figure 17.
HARK_HOST_DEVICE uint64_t split_mix(uint64_t start, uint64_t i) {
    uint64_t z = start + i * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// In [0, 1): the number at `position` of the sequence that `seed` draws. It depends on nothing
// else.
HARK_HOST_DEVICE double uniform_at(uint64_t seed, uint64_t position) {
    return static_cast<double>(split_mix(seed, position + 1) >> 11) * 0x1p-53;
}

class Random {
  public:
    explicit Random(uint64_t seed) : seed_(seed) {}
    uint64_t next() { return split_mix(seed_, ++count_); }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)

  private:
    uint64_t seed_, count_ = 0;
};

}  // namespace hark
