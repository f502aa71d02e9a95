// What Python's operators do with values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace hark::jinja {

// str() and repr() (repr.cc).
Text str_of(Interpreter& in, const Value& value);
Text repr_of(Interpreter& in, const Value& value);
// A float's repr(), also that of JSON.
std::string real_to_string(double value);

// The quoted text of a string's repr().
Text quoted(const Text& text);

// ==, and an order of less (-1), equal and greater (1) (comparison.cc). No order for NaN.
bool equal(Interpreter& in, const Value& left, const Value& right);
std::optional<int> order(Interpreter& in, const Value& left, const Value& right,
                         std::string_view symbol);
bool compare(Interpreter& in, const Value& left, const Value& right, std::string_view symbol);
bool contains(Interpreter& in, const Value& container, const Value& item);
// The key's place in the dict, null if it has none. Throws Error for a list as a key.
const Value* find_key(Interpreter& in, const Dict& dict, const Value& key);
// Adds or replaces an item of a dict that is being made.
void set_key(Interpreter& in, std::vector<std::pair<Value, Value>>& items, const Value& key,
             Value value);

// + - * / // % ** and unary minus (arithmetic.cc).
Value arithmetic(Interpreter& in, std::string_view symbol, const Value& left, const Value& right);
Value negative(const Value& value, bool negate);
// Markup's escapes of < > & " '.
Text escaped(const Text& text);
// "%s" % values (printf.cc).
Text printf_format(Interpreter& in, const Text& format, const Value& values);

// The second of each pair, in the order of the first: stable, as Python's sorted() (sorting.cc).
Items sorted(Interpreter& in, std::vector<std::pair<Value, Value>> keyed, bool reverse);

// Iteration (access.cc). Throws Error if the value has none.
Next iterate(Interpreter& in, const Value& value);
bool is_iterable(const Value& value);
Items collect(Interpreter& in, const Value& value);
// len(), nullopt if the value has none.
std::optional<size_t> length_of(const Value& value);

// value.name, value[key] and value[begin:end:step] (access.cc).
Value attribute(Interpreter& in, const Value& value, std::string_view name);
Value item(Interpreter& in, const Value& value, const Value& key);
Value slice(Interpreter& in, const Value& value, const Value* begin, const Value* end,
            const Value* step);
Value call(Interpreter& in, const Value& function, Args& args);
// A path of names with dots, or a position, as the filters' attribute (filters_choice.cc).
Value look_up(Interpreter& in, const Value& value, const Value& path);

}  // namespace hark::jinja
