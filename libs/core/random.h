// A seeded generator with the same numbers on every machine.
#pragma once

#include <cstdint>

namespace hark {

// SplitMix64. Source: Steele, Lea & Flood 2014, figure 17.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)

  private:
    uint64_t state_;
};

}  // namespace hark
