#include "core/finite.h"

#include <cmath>
#include <limits>

namespace hark {

bool all_finite(std::span<const float> values) {
    int others = 0;
    for (const float x : values) others |= !(std::abs(x) <= std::numeric_limits<float>::max());
    return others == 0;
}

}  // namespace hark
