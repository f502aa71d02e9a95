// Numbers in the forms that % and format() share.
#pragma once

#include <cstdint>
#include <string>

namespace hark::jinja {

// Digits without a sign, in base 2, 8, 10 or 16.
std::string digits_of(uint64_t value, int base, bool upper);

// A finite value's magnitude in the form e, f, g or their capitals, or "inf" and "nan"; without a
// sign. `alternate` keeps the point and the zeros of g.
std::string real_digits(double value, char form, int precision, bool alternate);

}  // namespace hark::jinja
