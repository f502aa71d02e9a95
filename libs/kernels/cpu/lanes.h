// For processors with AVX-512; each file that includes it compiles it with its own flags, so the
// names are local to the file.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace hark {
namespace {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The first n of 16 lanes: none if n < 0, all if it is more.
inline __mmask16 first_lanes(int64_t n) {
    if (n <= 0) return 0;
    return n >= 16 ? 0xffff : static_cast<__mmask16>((1u << n) - 1);
}

}  // namespace
}  // namespace hark
