// Whether numbers are numbers.
#pragma once

#include <span>

namespace hark {

// Whether no value is infinite or not a number. It looks at all of them, which the compiler makes
// vectors of.
bool all_finite(std::span<const float> values);

}  // namespace hark
