#include "text/decimal.h"

#include <algorithm>

#include "text/unicode.h"

namespace hark {

std::string decimal(std::string_view digits) {
    const size_t first = digits.find_first_not_of('0');
    return first == digits.npos ? "0" : std::string(digits.substr(first));
}

std::string add(std::string_view a, std::string_view b) {
    std::string sum;
    int carry = 0;
    for (size_t i = 0; i < std::max(a.size(), b.size()) || carry > 0; ++i) {
        if (i < a.size()) carry += a[a.size() - 1 - i] - '0';
        if (i < b.size()) carry += b[b.size() - 1 - i] - '0';
        sum += static_cast<char>('0' + carry % 10);
        carry /= 10;
    }
    std::reverse(sum.begin(), sum.end());
    return decimal(sum);
}

std::string times_power_of_ten(std::string_view number, size_t zeros) {
    return decimal(std::string(number) + std::string(zeros, '0'));
}

bool is_multiple_of_power_of_ten(std::string_view number, size_t zeros) {
    const size_t last = number.find_last_not_of('0');
    return last == number.npos || number.size() - 1 - last >= zeros;
}

std::optional<std::string> whole_product(std::string_view text, size_t zeros) {
    std::string digits;
    std::optional<size_t> point;  // digits ahead of it
    for (char32_t c : to_code_points(text)) {
        const int digit = digit_value(c);
        if (digit >= 0) {
            digits += static_cast<char>('0' + digit);
        } else {
            if (c != U'.' || point) return std::nullopt;
            point = digits.size();
        }
    }
    if (digits.empty()) return std::nullopt;
    const size_t decimals = point ? digits.size() - *point : 0;
    if (decimals <= zeros) return decimal(digits + std::string(zeros - decimals, '0'));
    const size_t lost = decimals - zeros;
    if (!is_multiple_of_power_of_ten(digits, lost)) return std::nullopt;
    return decimal(
        std::string_view(digits).substr(0, digits.size() - std::min(lost, digits.size())));
}

}  // namespace hark
