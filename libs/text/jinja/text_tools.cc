#include "text/jinja/text_tools.h"

#include <cctype>
#include <charconv>
#include <cstdlib>

#include "core/ascii.h"
#include "core/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

// Old is empty: `with` goes before each code point and after the last one.
Text interleaved(const Text& text, const Text& with, int64_t count) {
    const auto offsets = code_point_offsets(text.bytes());
    Text result;
    for (size_t i = 0; i < offsets.size(); ++i) {
        if (count < 0 || static_cast<int64_t>(i) < count) result.append(with);
        if (i + 1 < offsets.size()) result.append(text, offsets[i], offsets[i + 1]);
    }
    return result;
}

// Without outer white space, with digits of any script as ASCII's; nullopt if an underscore is not
// between digits.
std::optional<std::string> plain_number(std::string_view text) {
    std::string plain;
    for (const char32_t code_point : to_code_points(text)) {
        const int digit = digit_value(code_point);
        if (digit >= 0)
            plain += static_cast<char>('0' + digit);
        else if (is_space(code_point))
            plain += ' ';
        else if (code_point < 0x80)
            plain += static_cast<char>(code_point);
        else
            return std::nullopt;
    }
    const size_t begin = plain.find_first_not_of(' ');
    if (begin == plain.npos) return std::nullopt;
    plain = plain.substr(begin, plain.find_last_not_of(' ') - begin + 1);
    std::string digits;
    const auto is_digit = [&](size_t at) {
        return at < plain.size() && std::isalnum(static_cast<unsigned char>(plain[at]));
    };
    for (size_t i = 0; i < plain.size(); ++i) {
        if (plain[i] != '_')
            digits += plain[i];
        else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1))
            return std::nullopt;
    }
    return digits;
}

// Removes the prefix 0x, 0o or 0b; `base` 0 is decided by it.
bool take_prefix(std::string_view& digits, int64_t& base) {
    const char kind =
        digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 32) : ' ';
    const int64_t named = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (named != 0 && (base == named || base == 0)) {
        digits.remove_prefix(2);
        base = named;
    } else if (base == 0) {
        base = 10;
        if (digits.size() > 1 && digits[0] == '0')
            return digits.find_first_not_of('0') == digits.npos;
    }
    return true;
}

}  // namespace

Text replaced(const Text& text, const Text& old, const Text& with, int64_t count) {
    if (old.empty()) return interleaved(text, with, count);
    Text result;
    size_t at = 0;
    for (; count != 0; --count) {
        const size_t found = find_bytes(text.bytes(), old.bytes(), at);
        if (found == std::string::npos) break;
        result.append(text, at, found);
        result.append(with);
        at = found + old.size();
    }
    result.append(text, at, text.size());
    return result;
}

Text justified(const Text& text, int64_t width, const Text& fill, Side side) {
    const auto size = static_cast<int64_t>(count_code_points(text.bytes()));
    if (width <= size) return text;
    require(width <= static_cast<int64_t>(kMaxTextBytes), "a width of ", width, " is too large");
    const int64_t margin = width - size;
    // Python's rule for an odd margin.
    const int64_t half = margin / 2 + (margin & width & 1);
    const int64_t before = side == Side::left ? 0 : side == Side::right ? margin : half;
    Text result;
    for (int64_t i = 0; i < before; ++i) result.append(fill);
    result.append(text);
    for (int64_t i = before; i < margin; ++i) result.append(fill);
    result.is_markup = text.is_markup;
    return result;
}

std::optional<int64_t> parse_integer(std::string_view text, int64_t base) {
    require(base == 0 || (base >= 2 && base <= 36), "int() base must be >= 2 and <= 36, or 0");
    const auto plain = plain_number(text);
    if (!plain) return std::nullopt;
    std::string_view digits = *plain;
    const bool is_negative = digits.starts_with('-');
    if (is_negative || digits.starts_with('+')) digits.remove_prefix(1);
    if (!take_prefix(digits, base) || digits.empty()) return std::nullopt;
    uint64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                        static_cast<int>(base));
    if (result.ec == std::errc::invalid_argument || result.ptr != digits.data() + digits.size())
        return std::nullopt;
    require(result.ec == std::errc{} && value <= static_cast<uint64_t>(INT64_MAX), "the integer ",
            digits, " has more than 64 bits");
    return is_negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

std::optional<double> parse_real(std::string_view text) {
    const auto plain = plain_number(text);
    if (!plain) return std::nullopt;
    const std::string low = ascii_lower(*plain);
    const size_t sign = low[0] == '-' || low[0] == '+' ? 1 : 0;
    const std::string rest = low.substr(sign);
    const bool is_word = rest == "inf" || rest == "infinity" || rest == "nan";
    // Not hexadecimal, which strtod reads.
    if (!is_word && rest.find_first_not_of("0123456789.e+-") != rest.npos) return std::nullopt;
    if (!is_word &&
        (rest.empty() || (rest[0] != '.' && !std::isdigit(static_cast<unsigned char>(rest[0])))))
        return std::nullopt;
    char* end = nullptr;
    const double value = std::strtod(low.c_str(), &end);
    return end == low.c_str() + low.size() ? std::optional<double>(value) : std::nullopt;
}

}  // namespace hark::jinja
