// Python's escapes in string literals: str.encode("ascii", "backslashreplace") and
// decode("unicode-escape"), as Jinja's lexer reads them.
#include <charconv>
#include <cstdio>

#include "core/error.h"
#include "text/jinja/lexer.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

void append_checked(std::string& text, uint32_t code_point) {
    require(code_point <= 0x10FFFF, "illegal Unicode character in a string");
    require(code_point < 0xD800 || code_point > 0xDFFF, "a lone surrogate in a string");
    append_code_point(text, code_point);
}

// Exactly `count` hexadecimal digits.
size_t hexadecimal(std::string& text, std::string_view literal, size_t at, size_t count) {
    uint32_t value = 0;
    const std::string_view digits = literal.substr(at, count);
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    require(digits.size() == count && result.ptr == digits.data() + count,
            "truncated \\ escape in a string: expected ", count, " hexadecimal digits");
    append_checked(text, value);
    return at + count;
}

// Up to three octal digits.
size_t octal(std::string& text, std::string_view literal, size_t at) {
    uint32_t value = 0;
    size_t end = at;
    while (end < literal.size() && end < at + 3 && literal[end] >= '0' && literal[end] <= '7')
        value = value * 8 + static_cast<uint32_t>(literal[end++] - '0');
    append_checked(text, value);
    return end;
}

// A code point after a backslash that is not ASCII: Python spells it first, so the backslash
// escapes the spelling's own.
size_t spelled(std::string& text, std::string_view literal, size_t at) {
    const auto code_point = static_cast<uint32_t>(next_code_point(literal, at));
    char spelling[16];
    const char* format = code_point < 0x100     ? "\\x%02x"
                         : code_point < 0x10000 ? "\\u%04x"
                                                : "\\U%08x";
    std::snprintf(spelling, sizeof spelling, format, code_point);
    text += spelling;
    return at;
}

size_t append_escape(std::string& text, std::string_view literal, size_t at) {
    static constexpr std::string_view kNames = "\\'\"abfnrtv";
    static constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    const char letter = literal[at];
    if (letter == '\n') return at + 1;
    if (const size_t known = kNames.find(letter); known != kNames.npos) {
        text += kValues[known];
        return at + 1;
    }
    if (letter == 'x') return hexadecimal(text, literal, at + 1, 2);
    if (letter == 'u') return hexadecimal(text, literal, at + 1, 4);
    if (letter == 'U') return hexadecimal(text, literal, at + 1, 8);
    if (letter == 'N') fail("\\N{...} in a string is not supported; write \\uXXXX");
    if (letter >= '0' && letter <= '7') return octal(text, literal, at);
    if (static_cast<unsigned char>(letter) >= 0x80) return spelled(text, literal, at);
    text += '\\';
    text += letter;
    return at + 1;
}

}  // namespace

std::string unescape(std::string_view literal) {
    std::string text;
    for (size_t at = 0; at < literal.size();) {
        if (literal[at] == '\\' && at + 1 < literal.size())
            at = append_escape(text, literal, at + 1);
        else
            text += literal[at++];
    }
    return text;
}

}  // namespace hark::jinja
