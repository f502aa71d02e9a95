// + - * / // % **, as Python's types define them. Integers have 64 bits.
#include <cmath>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

[[noreturn]] void fail_operands(std::string_view symbol, const Value& left, const Value& right) {
    if (symbol == "+" && left.text())
        fail("can only concatenate str (not \"", type_name(right), "\") to str");
    fail("unsupported operand type(s) for ", symbol, ": '", type_name(left), "' and '",
         type_name(right), "'");
}

[[noreturn]] void fail_overflow(std::string_view symbol) {
    fail("the result of ", symbol, " has more than 64 bits");
}

void require_divisor(bool holds) { require(holds, "division by zero"); }

int64_t floor_divide(int64_t a, int64_t b) {
    require_divisor(b != 0);
    if (b == -1 && a == INT64_MIN) fail_overflow("//");
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t modulo(int64_t a, int64_t b) {
    require_divisor(b != 0);
    if (b == -1) return 0;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value power(int64_t base, int64_t exponent) {
    if (exponent < 0) {
        require_divisor(base != 0);
        return std::pow(static_cast<double>(base), static_cast<double>(exponent));
    }
    if (base == 0 || base == 1) return exponent == 0 ? int64_t{1} : base;
    if (base == -1) return exponent % 2 == 0 ? int64_t{1} : int64_t{-1};
    int64_t result = 1;
    for (; exponent > 0; --exponent)
        if (__builtin_mul_overflow(result, base, &result)) fail_overflow("**");
    return result;
}

Value integers(std::string_view symbol, int64_t a, int64_t b) {
    int64_t result = 0;
    if (symbol == "+") {
        if (__builtin_add_overflow(a, b, &result)) fail_overflow(symbol);
    } else if (symbol == "-") {
        if (__builtin_sub_overflow(a, b, &result)) fail_overflow(symbol);
    } else if (symbol == "*") {
        if (__builtin_mul_overflow(a, b, &result)) fail_overflow(symbol);
    } else if (symbol == "/") {
        require_divisor(b != 0);
        return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    } else if (symbol == "//") {
        return floor_divide(a, b);
    } else if (symbol == "%") {
        return modulo(a, b);
    } else {
        return power(a, b);
    }
    return result;
}

Value reals(std::string_view symbol, double a, double b) {
    if (symbol == "+") return a + b;
    if (symbol == "-") return a - b;
    if (symbol == "*") return a * b;
    if (symbol == "**") {
        require_divisor(a != 0 || b >= 0);
        require(a >= 0 || b == std::floor(b), "complex numbers are not supported");
        const double result = std::pow(a, b);
        require(!std::isinf(result) || std::isinf(a) || std::isinf(b),
                "the result of ** is too large");
        return result;
    }
    require_divisor(b != 0);
    if (symbol == "/") return a / b;
    double rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
    if (symbol == "%") return rest == 0 ? std::copysign(0.0, b) : rest;
    const double quotient = (a - rest) / b;
    const double floored = std::floor(quotient);
    return quotient == 0 ? std::copysign(0.0, a / b) : floored + (quotient - floored > 0.5);
}

Value repeat(Interpreter& in, const Value& value, int64_t times) {
    const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
    if (const Text* text = value.text()) {
        require(text->empty() || count <= kMaxTextBytes / text->size(), "a text is longer than ",
                kMaxTextBytes, " bytes");
        Text result;
        if (!text->empty())
            for (size_t i = 0; i < count; ++i) result.append(*text);
        result.is_markup = text->is_markup;
        return in.text(std::move(result));
    }
    const Items& once = *value.items();
    if (!once.empty()) in.charge(std::min<uint64_t>(count, kMaxSteps + 1) * once.size());
    Items items;
    if (!once.empty())
        for (size_t i = 0; i < count; ++i) items.insert(items.end(), once.begin(), once.end());
    return value.list() ? in.list(std::move(items)) : in.tuple(std::move(items));
}

Value add_texts(Interpreter& in, const Text& left, const Text& right) {
    const bool is_markup = left.is_markup || right.is_markup;
    Text sum = is_markup && !left.is_markup ? escaped(left) : left;
    sum.append(is_markup && !right.is_markup ? escaped(right) : right);
    sum.is_markup = is_markup;
    return in.text(std::move(sum));
}

Value add_items(Interpreter& in, const Value& left, const Value& right) {
    in.charge(left.items()->size() + right.items()->size());
    Items items = *left.items();
    items.insert(items.end(), right.items()->begin(), right.items()->end());
    return left.list() ? in.list(std::move(items)) : in.tuple(std::move(items));
}

}  // namespace

Value arithmetic(Interpreter& in, std::string_view symbol, const Value& left, const Value& right) {
    if (symbol == "%" && left.text()) return in.text(printf_format(in, *left.text(), right));
    require_defined(left);
    require_defined(right);
    const auto a = left.integer(), b = right.integer();
    if (a && b) return integers(symbol, *a, *b);
    if (left.number() && right.number()) return reals(symbol, *left.number(), *right.number());
    if (symbol == "+") {
        if (left.text() && right.text()) return add_texts(in, *left.text(), *right.text());
        if ((left.list() && right.list()) || (left.tuple() && right.tuple()))
            return add_items(in, left, right);
    }
    if (symbol == "*") {
        if ((left.text() || left.items()) && b) return repeat(in, left, *b);
        if ((right.text() || right.items()) && a) return repeat(in, right, *a);
    }
    fail_operands(symbol, left, right);
}

Value negative(const Value& value, bool negate) {
    require_defined(value);
    if (const auto number = value.integer()) {
        if (negate && *number == INT64_MIN) fail_overflow("-");
        return negate ? -*number : *number;
    }
    if (const double* number = value.real()) return negate ? -*number : *number;
    fail("bad operand type for unary ", negate ? '-' : '+', ": '", type_name(value), "'");
}

Text escaped(const Text& text) {
    const std::string& bytes = text.bytes();
    Text result;
    size_t plain = 0;
    for (size_t at = 0; at < bytes.size(); ++at) {
        const char letter = bytes[at];
        const char* escape = letter == '&'    ? "&amp;"
                             : letter == '<'  ? "&lt;"
                             : letter == '>'  ? "&gt;"
                             : letter == '"'  ? "&#34;"
                             : letter == '\'' ? "&#39;"
                                              : nullptr;
        if (!escape) continue;
        result.append(text, plain, at);
        result.append(escape, text.is_input(at));
        plain = at + 1;
    }
    result.append(text, plain, bytes.size());
    result.is_markup = true;
    return result;
}

}  // namespace hark::jinja
