#include "text/jinja/lexer_scan.h"

#include <charconv>
#include <cstdlib>
#include <string>

#include "core/ascii.h"
#include "core/error.h"
#include "text/jinja/text.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark::jinja {
namespace {

bool is_digit(std::string_view text, size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

char at_or_zero(std::string_view text, size_t at) { return at < text.size() ? text[at] : '\0'; }

// (\d+_)*\d+ from `at`; `at` if there are no digits.
size_t digits_end(std::string_view text, size_t at) {
    size_t end = at;
    while (is_digit(text, end) ||
           (end > at && at_or_zero(text, end) == '_' && is_digit(text, end + 1)))
        ++end;
    return end;
}

size_t exponent_end(std::string_view text, size_t at) {
    if (ascii_lower(at_or_zero(text, at)) != 'e') return at;
    size_t digits = at + 1;
    if (at_or_zero(text, digits) == '+' || at_or_zero(text, digits) == '-') ++digits;
    const size_t end = digits_end(text, digits);
    return end == digits ? at : end;
}

std::string without_underscores(std::string_view text) {
    std::string plain;
    for (const char letter : text)
        if (letter != '_') plain += letter;
    return plain;
}

size_t scan_real(std::string_view text, size_t at, Token& token) {
    if (at > 0 && text[at - 1] == '.') return at;
    const size_t whole = digits_end(text, at);
    if (whole == at) return at;
    size_t end = whole;
    if (at_or_zero(text, whole) == '.' && is_digit(text, whole + 1))
        end = digits_end(text, whole + 1);
    end = exponent_end(text, end);
    if (end == whole) return at;
    token.kind = TokenKind::real;
    token.text = without_underscores(text.substr(at, end - at));
    token.real = std::strtod(token.text.c_str(), nullptr);
    return end;
}

bool is_digit_of(char letter, int base) {
    const char low = ascii_lower(letter);
    const int value = low >= '0' && low <= '9'   ? low - '0'
                      : low >= 'a' && low <= 'f' ? low - 'a' + 10
                                                 : 99;
    return value < base;
}

// (_?digit)* from `at`.
size_t based_end(std::string_view text, size_t at, int base) {
    for (;;) {
        const size_t digit = at + (at_or_zero(text, at) == '_');
        if (digit >= text.size() || !is_digit_of(text[digit], base)) return at;
        at = digit + 1;
    }
}

size_t scan_integer(std::string_view text, size_t at, Token& token) {
    if (!is_digit(text, at)) return at;
    const char kind = ascii_lower(at_or_zero(text, at + 1));
    int base = text[at] != '0' ? 10 : kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 1;
    size_t end = at + 1;
    if (base == 10) end = based_end(text, at + 1, 10);
    if (base == 1) end = based_end(text, at + 1, 1);  // zeros only
    std::string digits;
    if (base != 10 && base != 1) {
        end = based_end(text, at + 2, base);
        if (end == at + 2) base = 1, end = at + 1;
        digits = without_underscores(text.substr(at + 2, end - at - (base == 1 ? 1 : 2)));
    }
    token.kind = TokenKind::integer;
    if (base == 1) return end;
    if (base == 10) digits = without_underscores(text.substr(at, end - at));
    const auto result =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
    require(result.ec == std::errc{}, "line ", token.line, ": the integer ", digits,
            " has more than 64 bits");
    return end;
}

bool is_name(char32_t code_point) {
    if (code_point < 0x80)
        return code_point == '_' || (code_point >= '0' && code_point <= '9') ||
               ((code_point | 32) >= 'a' && (code_point | 32) <= 'z');
    const char kind = category_class(code_point);
    return kind == 'L' || kind == 'N' || kind == 'M';
}

size_t scan_name(std::string_view text, size_t at, Token& token) {
    size_t end = at;
    while (end < text.size()) {
        size_t next = end;
        if (!is_name(next_code_point(text, next))) break;
        end = next;
    }
    if (end == at) return at;
    token.kind = TokenKind::name;
    token.text = text.substr(at, end - at);
    require(!is_digit(text, at), "line ", token.line, ": Invalid character in identifier ",
            token.text);
    return end;
}

size_t scan_string(std::string_view text, size_t at, Token& token) {
    const char quote = text[at];
    if (quote != '\'' && quote != '"') return at;
    size_t end = at + 1;
    while (end < text.size() && text[end] != quote) end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) return at;
    token.kind = TokenKind::string;
    try {
        token.text = unescape(text.substr(at + 1, end - at - 1));
    } catch (const Error& error) {
        fail("line ", token.line, ": ", error.what());
    }
    return end + 1;
}

size_t scan_symbol(std::string_view text, size_t at, Token& token) {
    static constexpr std::string_view kSymbols[] = {
        "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view symbol : kSymbols) {
        if (text.substr(at, symbol.size()) != symbol) continue;
        token.kind = TokenKind::symbol;
        token.text = symbol;
        return at + symbol.size();
    }
    return at;
}

}  // namespace

size_t skip_spaces(std::string_view text, size_t at) {
    while (at < text.size()) {
        size_t next = at;
        if (!is_space(next_code_point(text, next))) break;
        at = next;
    }
    return at;
}

size_t trimmed_end(std::string_view text) {
    size_t end = text.size();
    while (end > 0) {
        size_t begin = end - 1;
        while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
        size_t next = begin;
        if (!is_space(next_code_point(text, next))) break;
        end = begin;
    }
    return end;
}

size_t raw_begin_end(std::string_view text, size_t at) {
    size_t next = at + 2;
    if (at_or_zero(text, next) == '-' || at_or_zero(text, next) == '+') ++next;
    next = skip_spaces(text, next);
    if (text.substr(next, 3) != "raw") return 0;
    next = skip_spaces(text, next + 3);
    if (text.substr(next, 3) == "-%}") return skip_spaces(text, next + 3);
    return text.substr(next, 2) == "%}" ? next + 2 : 0;
}

std::pair<size_t, size_t> find_endraw(std::string_view text, size_t at) {
    for (at = find_bytes(text, "{%", at); at != text.npos; at = find_bytes(text, "{%", at + 1)) {
        size_t next = at + 2;
        if (at_or_zero(text, next) == '-' || at_or_zero(text, next) == '+') ++next;
        next = skip_spaces(text, next);
        if (text.substr(next, 6) != "endraw") continue;
        next = skip_spaces(text, next + 6);
        if (at_or_zero(text, next) == '-' || at_or_zero(text, next) == '+') ++next;
        if (text.substr(next, 2) == "%}") return {at, next + 2};
    }
    return {text.npos, text.npos};
}

size_t scan_token(std::string_view text, size_t at, Token& token) {
    for (const auto scan : {scan_real, scan_integer, scan_name, scan_string, scan_symbol})
        if (const size_t end = scan(text, at, token); end != at) return end;
    return at;
}

}  // namespace hark::jinja
