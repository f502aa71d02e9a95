// Filters, tests, functions and methods that a template can call.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "text/jinja/value.h"

namespace hark::jinja {

using Filter = Value (*)(Interpreter&, const Value& operand, Args&);
using Test = bool (*)(Interpreter&, const Value& operand, Args&);

// Null if there is none.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
// range, namespace, dict, cycler, joiner, raise_exception and strftime_now; undefined for others.
Value find_global(Interpreter&, std::string_view name);

// A method of a string, list, tuple or dict: bound, undefined if the sandbox blocks it, nullopt if
// Python has none.
std::optional<Value> find_method(Interpreter&, const Value& self, std::string_view name);

// A row of a table of filters, tests or methods.
template <class F>
struct Named {
    std::string_view name;
    F function;
};

// Null if no row has the name.
template <class F, size_t n>
F find_named(const Named<F> (&table)[n], std::string_view name) {
    for (const Named<F>& row : table)
        if (row.name == name) return row.function;
    return nullptr;
}

// The tables' parts.
Filter find_text_filter(std::string_view name);
Filter find_list_filter(std::string_view name);
Filter find_choice_filter(std::string_view name);
Filter find_number_filter(std::string_view name);
using Method = Value (*)(Interpreter&, const Value& self, Args&);
Method find_text_method(std::string_view name);
Method find_split_method(std::string_view name);
Method find_predicate_method(std::string_view name);
Method find_container_method(const Value& self, std::string_view name);

// Arguments matched with parameters as Python does it. Throws Error for unknown or missing ones.
class Bound {
  public:
    Bound(std::string_view function, Args& args, std::initializer_list<std::string_view> names,
          size_t required = 0);

    // Null if it was not given.
    const Value* operator[](size_t i) const { return values_[i]; }
    // null if it was not given or is none.
    const Value* some(size_t i) const;
    const Text& text(size_t i) const;
    int64_t integer(size_t i, int64_t otherwise) const;
    bool flag(size_t i, bool otherwise = false) const;

  private:
    std::string_view function_;
    std::vector<const Value*> values_;
};

}  // namespace hark::jinja
