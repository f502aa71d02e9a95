// Tests, after the word is: jinja2 3.1.6, tests.py.
#include "core/error.h"
#include "text/jinja/case.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

const Value& only(Args& args) {
    require(args.positional.size() == 1 && args.named.empty(), "the test takes one argument (got ",
            args.positional.size() + args.named.size(), ")");
    return args.positional.front();
}

void no_arguments(const Args& args) {
    require(args.positional.empty() && args.named.empty(), "the test takes no arguments");
}

// A test of the value alone.
template <bool (*f)(const Value&)>
bool plain(Interpreter&, const Value& value, Args& args) {
    no_arguments(args);
    return f(value);
}

bool defined(const Value& value) { return !value.is_undefined(); }
bool undefined_test(const Value& value) { return value.is_undefined(); }
bool none(const Value& value) { return value.is_none(); }
bool boolean(const Value& value) { return value.boolean(); }
bool true_test(const Value& value) { return value.boolean() && *value.boolean(); }
bool false_test(const Value& value) { return value.boolean() && !*value.boolean(); }
bool is_integer(const Value& value) { return value.integer() && !value.boolean(); }
bool is_real(const Value& value) { return value.real(); }
bool number(const Value& value) { return value.number().has_value(); }
bool is_string(const Value& value) { return value.text(); }
bool mapping(const Value& value) { return value.dict(); }
bool iterable(const Value& value) { return is_iterable(value); }
bool escaped_test(const Value& value) { return value.text() && value.text()->is_markup; }

// What has a length and items.
bool sequence(const Value& value) {
    return value.text() || value.items() || value.dict() || value.is_undefined() ||
           value.as<Range>();
}

bool callable(const Value& value) {
    return value.is_undefined() || (value.object() && value.object()->is_callable());
}

bool lower_test(Interpreter& in, const Value& value, Args& args) {
    no_arguments(args);
    return is_lower(str_of(in, value).bytes());
}

bool upper_test(Interpreter& in, const Value& value, Args& args) {
    no_arguments(args);
    return is_upper(str_of(in, value).bytes());
}

bool rest_is(Interpreter& in, const Value& value, const Value& divisor, int64_t wanted) {
    return equal(in, arithmetic(in, "%", value, divisor), wanted);
}

bool odd(Interpreter& in, const Value& value, Args& args) {
    no_arguments(args);
    return rest_is(in, value, int64_t{2}, 1);
}
bool even(Interpreter& in, const Value& value, Args& args) {
    no_arguments(args);
    return rest_is(in, value, int64_t{2}, 0);
}
bool divisible_by(Interpreter& in, const Value& value, Args& args) {
    return rest_is(in, value, only(args), 0);
}

bool same_as(Interpreter&, const Value& value, Args& args) { return value.is_same(only(args)); }

bool in_test(Interpreter& in, const Value& value, Args& args) {
    return contains(in, only(args), value);
}

bool filter(const Value& value) { return value.text() && find_filter(value.text()->bytes()); }

bool test(const Value& value) { return value.text() && find_test(value.text()->bytes()); }

bool eq(Interpreter& in, const Value& value, Args& args) {
    return compare(in, value, only(args), "==");
}
bool ne(Interpreter& in, const Value& value, Args& args) {
    return compare(in, value, only(args), "!=");
}
bool lt(Interpreter& in, const Value& value, Args& args) {
    return compare(in, value, only(args), "<");
}
bool le(Interpreter& in, const Value& value, Args& args) {
    return compare(in, value, only(args), "<=");
}
bool gt(Interpreter& in, const Value& value, Args& args) {
    return compare(in, value, only(args), ">");
}
bool ge(Interpreter& in, const Value& value, Args& args) {
    return compare(in, value, only(args), ">=");
}

}  // namespace

Test find_test(std::string_view name) {
    static constexpr Named<Test> kTests[] = {
        {"!=", ne},
        {"<", lt},
        {"<=", le},
        {"==", eq},
        {">", gt},
        {">=", ge},
        {"boolean", plain<boolean>},
        {"callable", plain<callable>},
        {"defined", plain<defined>},
        {"divisibleby", divisible_by},
        {"eq", eq},
        {"equalto", eq},
        {"escaped", plain<escaped_test>},
        {"even", even},
        {"false", plain<false_test>},
        {"filter", plain<filter>},
        {"float", plain<is_real>},
        {"ge", ge},
        {"greaterthan", gt},
        {"gt", gt},
        {"in", in_test},
        {"integer", plain<is_integer>},
        {"iterable", plain<iterable>},
        {"le", le},
        {"lessthan", lt},
        {"lower", lower_test},
        {"lt", lt},
        {"mapping", plain<mapping>},
        {"ne", ne},
        {"none", plain<none>},
        {"number", plain<number>},
        {"odd", odd},
        {"sameas", same_as},
        {"sequence", plain<sequence>},
        {"string", plain<is_string>},
        {"test", plain<test>},
        {"true", plain<true_test>},
        {"undefined", plain<undefined_test>},
        {"upper", upper_test},
    };
    return find_named(kTests, name);
}

}  // namespace hark::jinja
