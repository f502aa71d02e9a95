// Filters of numbers: jinja2 3.1.6, filters.py.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_tools.h"

namespace hark::jinja {
namespace {

Value abs(Interpreter&, const Value& value, Args& args) {
    const Bound bound("abs", args, {});
    require_defined(value);
    require(value.number().has_value(), "bad operand type for abs(): '", type_name(value), "'");
    if (const double* number = value.real()) return std::fabs(*number);
    return negative(value, *value.integer() < 0);
}

// int() of a float; nullopt for NaN.
std::optional<int64_t> truncated(double value) {
    if (std::isnan(value)) return std::nullopt;
    require(std::fabs(value) < 9.2e18, "the integer ", value, " has more than 64 bits");
    return static_cast<int64_t>(value);
}

Value integer(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("int", args, {"default", "base"});
    require_defined(value);
    const Value otherwise = bound[0] ? *bound[0] : Value(int64_t{0});
    std::optional<int64_t> found;
    if (const Text* text = value.text()) {
        in.charge_bytes(text->size());
        found = parse_integer(text->bytes(), bound.integer(1, 10));
        const auto number = found ? std::nullopt : parse_real(text->bytes());
        if (number && !std::isinf(*number)) found = truncated(*number);
    } else if (const double* number = value.real()) {
        require(!std::isinf(*number), "cannot convert float infinity to integer");
        found = truncated(*number);
    } else {
        found = value.integer();
    }
    return found ? Value(*found) : otherwise;
}

Value real(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("float", args, {"default"});
    require_defined(value);
    std::optional<double> found = value.number();
    if (const Text* text = value.text()) {
        in.charge_bytes(text->size());
        found = parse_real(text->bytes());
    }
    if (found) return *found;
    return bound[0] ? *bound[0] : Value(0.0);
}

// Python's round(): half to even of the exact value.
double rounded(double value, int64_t precision) {
    if (!std::isfinite(value) || precision > 300) return value;
    if (precision < 0) {
        if (precision < -300) return std::copysign(0.0, value);
        const double unit = std::pow(10.0, static_cast<double>(-precision));
        return std::nearbyint(value / unit) * unit;
    }
    char text[700];
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(precision), value);
    return std::strtod(text, nullptr);
}

Value round(Interpreter&, const Value& value, Args& args) {
    const Bound bound("round", args, {"precision", "method"});
    const int64_t precision = bound.integer(0, 0);
    const std::string method = bound[1] ? bound.text(1).bytes() : "common";
    require(method == "common" || method == "ceil" || method == "floor",
            "method must be common, ceil or floor");
    require_defined(value);
    const auto number = value.number();
    require(number.has_value(), "type ", type_name(value), " doesn't define __round__ method");
    if (method != "common") {
        const double unit = std::pow(10.0, static_cast<double>(precision));
        const double scaled = *number * unit;
        // Python rounds to an integer, which has no negative zero.
        return ((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) + 0.0) / unit;
    }
    if (value.real()) return rounded(*number, precision);
    require(precision >= 0, "round: a negative precision of an integer is not supported");
    return *value.integer();
}

Value sum(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("sum", args, {"attribute", "start"});
    Value total = bound[1] ? *bound[1] : Value(int64_t{0});
    require(!total.text(), "sum() can't sum strings");
    const Next next = iterate(in, value);
    Value item;
    while (next(item))
        total = arithmetic(in, "+", total, bound.some(0) ? look_up(in, item, *bound[0]) : item);
    return total;
}

}  // namespace

Filter find_number_filter(std::string_view name) {
    static constexpr Named<Filter> kFilters[] = {
        {"abs", abs}, {"float", real}, {"int", integer}, {"round", round}, {"sum", sum},
    };
    return find_named(kFilters, name);
}

}  // namespace hark::jinja
