// Whether numbers are numbers.
#pragma once

#include <cmath>
#include <limits>
#include <span>

namespace hark {

// Whether no value is infinite or not a number. It looks at all of them, which the compiler makes
// vectors of.
inline bool all_finite(std::span<const float> values) {
    int others = 0;
    for (const float x : values) others |= !(std::abs(x) <= std::numeric_limits<float>::max());
    return others == 0;
}

}  // namespace hark
