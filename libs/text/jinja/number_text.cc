#include "text/jinja/number_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"

namespace hark::jinja {

std::string digits_of(uint64_t value, int base, bool upper) {
    const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    std::string text;
    do {
        text += digits[value % static_cast<uint64_t>(base)];
        value /= static_cast<uint64_t>(base);
    } while (value > 0);
    std::reverse(text.begin(), text.end());
    return text;
}

std::string real_digits(double value, char form, int precision, bool alternate) {
    const bool upper = form >= 'A' && form <= 'Z';
    if (std::isnan(value)) return upper ? "NAN" : "nan";
    if (std::isinf(value)) return upper ? "INF" : "inf";
    require(precision <= 1000, "a precision of ", precision, " is too large");
    const char pattern[] = {'%', '#', '.', '*', form, '\0'};
    const char plain[] = {'%', '.', '*', form, '\0'};
    char text[1400];
    std::snprintf(text, sizeof text, alternate ? pattern : plain, precision, std::fabs(value));
    return text;
}

}  // namespace hark::jinja
