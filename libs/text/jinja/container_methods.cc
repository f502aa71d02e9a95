// Methods of dict, list and tuple, and what the sandbox blocks.
#include <algorithm>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

enum class Part { keys, values, items };

template <Part part>
Value view(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("the method", args, {});
    Items items;
    for (const auto& [key, value] : self.dict()->items)
        items.push_back(part == Part::keys     ? key
                        : part == Part::values ? value
                                               : in.tuple({key, value}));
    in.charge(items.size());
    const char* kind = part == Part::keys     ? "dict_keys"
                       : part == Part::values ? "dict_values"
                                              : "dict_items";
    return in.object(std::make_shared<View>(kind, std::move(items)), self.height() + 1);
}

Value get(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("get", args, {"key", "default"}, 1);
    if (const Value* found = find_key(in, *self.dict(), *bound[0])) return *found;
    return bound[1] ? *bound[1] : Value(None{});
}

Value copy(Interpreter&, const Value& self, Args&) { return self; }  // nothing can change it

Value count_of_items(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("count", args, {"value"}, 1);
    int64_t found = 0;
    for (const Value& item : *self.items()) found += equal(in, item, *bound[0]);
    return found;
}

Value index(Interpreter& in, const Value& self, Args& args) {
    const Bound bound("index", args, {"value", "start", "stop"}, 1);
    const Items& items = *self.items();
    const auto size = static_cast<int64_t>(items.size());
    const auto place = [&](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? std::max(at, -size) + size : at, 0, size);
    };
    for (int64_t i = place(bound.integer(1, 0)); i < place(bound.integer(2, size)); ++i)
        if (equal(in, items[static_cast<size_t>(i)], *bound[0])) return i;
    fail(repr_of(in, *bound[0]).bytes(), " is not in list");
}

template <size_t n>
bool is_one_of(std::string_view name, const std::string_view (&names)[n]) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Methods that change the value, which the sandbox does not allow.
bool is_blocked(const Value& self, std::string_view name) {
    static constexpr std::string_view kOfDict[] = {"clear", "pop", "popitem", "setdefault",
                                                   "update"};
    static constexpr std::string_view kOfList[] = {"append", "clear",  "extend",  "insert",
                                                   "pop",    "remove", "reverse", "sort"};
    return (self.dict() && is_one_of(name, kOfDict)) || (self.list() && is_one_of(name, kOfList));
}

// Methods of Python that this interpreter lacks.
bool is_missing(const Value& self, std::string_view name) {
    static constexpr std::string_view kOfText[] = {"casefold",   "encode",       "expandtabs",
                                                   "format_map", "isidentifier", "isprintable",
                                                   "maketrans",  "translate"};
    return (self.text() && is_one_of(name, kOfText)) || (self.dict() && name == "fromkeys");
}

Method find_function(const Value& self, std::string_view name) {
    if (!self.text()) return find_container_method(self, name);
    for (const auto find : {find_text_method, find_split_method, find_predicate_method})
        if (const Method method = find(name)) return method;
    return nullptr;
}

}  // namespace

Method find_container_method(const Value& self, std::string_view name) {
    static constexpr Named<Method> kOfDict[] = {
        {"copy", copy},
        {"get", get},
        {"items", view<Part::items>},
        {"keys", view<Part::keys>},
        {"values", view<Part::values>},
    };
    static constexpr Named<Method> kOfItems[] = {{"count", count_of_items}, {"index", index}};
    if (self.dict()) return find_named(kOfDict, name);
    if (!self.items()) return nullptr;
    return self.list() && name == "copy" ? copy : find_named(kOfItems, name);
}

std::optional<Value> find_method(Interpreter& in, const Value& self, std::string_view name) {
    if (is_blocked(self, name))
        return undefined(concat("access to attribute '", name, "' of '", type_name(self),
                                "' object is unsafe."));
    const bool is_known = !is_missing(self, name);
    const Method method = is_known ? find_function(self, name) : nullptr;
    if (!method && is_known) return std::nullopt;
    const auto body = [self, method, full = concat(type_name(self), ".", name)](Interpreter& inner,
                                                                                Args& args) {
        require(method, full, " is not supported");
        inner.charge(1);
        const Value result = method(inner, self, args);
        if (!self.text() || !self.text()->is_markup || !result.text()) return result;
        Text markup = *result.text();
        markup.is_markup = true;
        return inner.text(std::move(markup));
    };
    return in.object(std::make_shared<Function>(std::string(name), body), self.height());
}

}  // namespace hark::jinja
