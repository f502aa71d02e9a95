// map, select, reject and their forms with attributes: jinja2 3.1.6, filters.py.
#include <algorithm>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"
#include "text/jinja/text_tools.h"

namespace hark::jinja {
namespace {

bool is_number(std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
}

int height_with(const Value& source, const Args& args) {
    int height = source.height();
    for (const Value& value : args.positional) height = std::max(height, value.height());
    for (const auto& named : args.named) height = std::max(height, named.second.height());
    return height;
}

Value take_first(Args& args, const char* what) {
    require(!args.positional.empty(), what);
    Value first = args.positional.front();
    args.positional.erase(args.positional.begin());
    return first;
}

std::string name_of(const Value& value, const char* kind) {
    require(value.text(), "the name of a ", kind, " must be a string");
    return value.text()->bytes();
}

// The items for which f holds, or does not.
using Condition = std::function<bool(const Value& item)>;

Value chosen(Interpreter& in, const Value& source, const Args& args, Condition holds) {
    if (!is_true(source))
        return in.object(std::make_shared<Generator>([](Value&) { return false; }));
    // Errors come with the first item, as in Python's generators.
    Next next;
    const auto body = [&in, source, next, holds](Value& item) mutable {
        if (!next) next = iterate(in, source);
        while (next(item))
            if (holds(item)) return true;
        return false;
    };
    return in.object(std::make_shared<Generator>(body), height_with(source, args));
}

template <bool wanted, bool of_attribute>
Value choose(Interpreter& in, const Value& source, Args& given) {
    Args args = given;
    const Value path = of_attribute && is_true(source)
                           ? take_first(args, "Missing parameter for attribute name")
                           : Value();
    Test test = nullptr;
    if (!args.positional.empty()) {
        const std::string name = name_of(take_first(args, ""), "test");
        test = find_test(name);
        require(test || !is_true(source), "No test named '", name, "'.");
    }
    return chosen(in, source, given, [&in, path, test, args](const Value& item) mutable {
        const Value value = of_attribute ? look_up(in, item, path) : item;
        return (test ? test(in, value, args) : is_true(value)) == wanted;
    });
}

Next mapped_attribute(Interpreter& in, const Value& source, const Args& args) {
    Value path, otherwise;
    bool has_default = false;
    for (const auto& [name, value] : args.named) {
        require(name == "attribute" || name == "default", "Unexpected keyword argument '", name,
                "'");
        if (name == "attribute") path = value;
        if (name == "default") otherwise = value, has_default = !value.is_none();
    }
    Next next;
    return [&in, source, next, path, otherwise, has_default](Value& item) mutable {
        if (!next) next = iterate(in, source);
        if (!next(item)) return false;
        item = look_up(in, item, path);
        if (has_default && item.is_undefined()) item = otherwise;
        return true;
    };
}

Value map(Interpreter& in, const Value& source, Args& given) {
    const int height = height_with(source, given);
    const bool has_attribute =
        std::any_of(given.named.begin(), given.named.end(),
                    [](const auto& named) { return named.first == "attribute"; });
    if (!is_true(source))
        return in.object(std::make_shared<Generator>([](Value&) { return false; }));
    if (given.positional.empty() && has_attribute)
        return in.object(std::make_shared<Generator>(mapped_attribute(in, source, given)), height);
    Args args = given;
    const std::string name = name_of(take_first(args, "map requires a filter argument"), "filter");
    const Filter filter = find_filter(name);
    require(filter, "No filter named '", name, "'.");
    Next next;
    const auto body = [&in, source, next, filter, args](Value& item) mutable {
        if (!next) next = iterate(in, source);
        if (!next(item)) return false;
        item = filter(in, item, args);
        return true;
    };
    return in.object(std::make_shared<Generator>(body), height);
}

Value attr(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("attr", args, {"name"}, 1);
    const std::string& name = bound.text(0).bytes();
    if (value.dict() && !find_method(in, value, name)) return undefined_attribute(value, name);
    return attribute(in, value, name);
}

}  // namespace

Value look_up(Interpreter& in, const Value& value, const Value& path) {
    if (!path.text()) return path.is_none() ? value : item(in, value, path);
    const std::string& names = path.text()->bytes();
    Value found = value;
    for (size_t begin = 0; begin <= names.size();) {
        const size_t end = std::min(names.find('.', begin), names.size());
        const std::string part = names.substr(begin, end - begin);
        found = item(in, found,
                     is_number(part) ? Value(parse_integer(part, 10).value_or(0)) : in.text(part));
        begin = end + 1;
    }
    return found;
}

Filter find_choice_filter(std::string_view name) {
    static constexpr Named<Filter> kFilters[] = {
        {"attr", attr},
        {"map", map},
        {"reject", choose<false, false>},
        {"rejectattr", choose<false, true>},
        {"select", choose<true, false>},
        {"selectattr", choose<true, true>},
    };
    return find_named(kFilters, name);
}

Filter find_filter(std::string_view name) {
    for (const auto find :
         {find_text_filter, find_list_filter, find_choice_filter, find_number_filter})
        if (const Filter filter = find(name)) return filter;
    return nullptr;
}

}  // namespace hark::jinja
