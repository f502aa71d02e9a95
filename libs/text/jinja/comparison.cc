// Equality, order and membership.
#include <cmath>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

[[noreturn]] void fail_order(const Value& left, const Value& right, std::string_view symbol) {
    if (left.is_undefined()) fail_undefined(left);
    if (right.is_undefined()) fail_undefined(right);
    fail("'", symbol, "' not supported between instances of '", type_name(left), "' and '",
         type_name(right), "'");
}

// x86's long double holds every 64 bit integer, and every double.
std::optional<int> order_numbers(const Value& left, const Value& right) {
    const auto wide = [](const Value& value) {
        return value.real() ? static_cast<long double>(*value.real())
                            : static_cast<long double>(*value.integer());
    };
    const long double a = wide(left), b = wide(right);
    if (std::isnan(a) || std::isnan(b)) return std::nullopt;
    return a < b ? -1 : a > b ? 1 : 0;
}

bool equal_items(Interpreter& in, const Items& left, const Items& right) {
    if (left.size() != right.size()) return false;
    for (size_t i = 0; i < left.size(); ++i)
        if (!equal(in, left[i], right[i])) return false;
    return true;
}

bool equal_dicts(Interpreter& in, const Dict& left, const Dict& right) {
    if (left.items.size() != right.items.size()) return false;
    for (const auto& [key, value] : left.items) {
        const Value* other = find_key(in, right, key);
        if (!other || !equal(in, value, *other)) return false;
    }
    return true;
}

void require_hashable(const Value& key) {
    require(!key.list() && !key.dict(), "unhashable type: '", type_name(key), "'");
    if (const Tuple* tuple = key.tuple())
        for (const Value& item : tuple->items) require_hashable(item);
}

}  // namespace

bool equal(Interpreter& in, const Value& left, const Value& right) {
    in.charge(1);
    if (left.is_same(right)) return true;
    if (left.number() && right.number()) return order_numbers(left, right) == 0;
    if (left.text() && right.text()) {
        in.charge_bytes(left.text()->size());
        return left.text()->bytes() == right.text()->bytes();
    }
    if (left.list() && right.list()) return equal_items(in, *left.items(), *right.items());
    if (left.tuple() && right.tuple()) return equal_items(in, *left.items(), *right.items());
    if (left.dict() && right.dict()) return equal_dicts(in, *left.dict(), *right.dict());
    return false;
}

std::optional<int> order(Interpreter& in, const Value& left, const Value& right,
                         std::string_view symbol) {
    in.charge(1);
    if (left.number() && right.number()) return order_numbers(left, right);
    if (left.text() && right.text()) {
        in.charge_bytes(left.text()->size());
        // The order of UTF-8's bytes is that of code points.
        const int sign = left.text()->bytes().compare(right.text()->bytes());
        return sign < 0 ? -1 : sign > 0 ? 1 : 0;
    }
    const bool are_items = (left.list() && right.list()) || (left.tuple() && right.tuple());
    if (!are_items) fail_order(left, right, symbol);
    const Items& a = *left.items();
    const Items& b = *right.items();
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
        if (!equal(in, a[i], b[i])) return order(in, a[i], b[i], symbol);
    return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

bool compare(Interpreter& in, const Value& left, const Value& right, std::string_view symbol) {
    if (symbol == "in") return contains(in, right, left);
    if (symbol == "not in") return !contains(in, right, left);
    if (symbol == "==" || symbol == "!=") {
        // NaN differs from itself.
        const bool same =
            left.real() && right.real() ? *left.real() == *right.real() : equal(in, left, right);
        return same == (symbol == "==");
    }
    const auto sign = order(in, left, right, symbol);
    if (!sign) return false;
    if (symbol == "<") return *sign < 0;
    if (symbol == "<=") return *sign <= 0;
    if (symbol == ">") return *sign > 0;
    return *sign >= 0;
}

bool contains(Interpreter& in, const Value& container, const Value& item) {
    if (const Text* text = container.text()) {
        require(item.text(), "'in <string>' requires string as left operand, not ",
                type_name(item));
        in.charge_bytes(text->size());
        return find_bytes(text->bytes(), item.text()->bytes(), 0) != std::string::npos;
    }
    if (const Dict* dict = container.dict()) return find_key(in, *dict, item) != nullptr;
    require(is_iterable(container), "argument of type '", type_name(container),
            "' is not iterable");
    const Next next = iterate(in, container);
    Value other;
    while (next(other))
        if (equal(in, other, item)) return true;
    return false;
}

const Value* find_key(Interpreter& in, const Dict& dict, const Value& key) {
    in.charge(1 + dict.items.size() / 8);
    require_hashable(key);
    if (const Text* text = key.text()) return dict.find(text->bytes());
    for (const auto& [known, value] : dict.items)
        if (equal(in, known, key)) return &value;
    return nullptr;
}

void set_key(Interpreter& in, std::vector<std::pair<Value, Value>>& items, const Value& key,
             Value value) {
    in.charge(1 + items.size() / 8);
    require_hashable(key);
    for (auto& [known, place] : items)
        if (known.text() && key.text() ? known.text()->bytes() == key.text()->bytes()
                                       : equal(in, known, key)) {
            place = std::move(value);
            return;
        }
    items.emplace_back(key, std::move(value));
}

}  // namespace hark::jinja
