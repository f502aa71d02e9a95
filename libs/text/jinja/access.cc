// Iteration, attributes, items and slices.
#include <algorithm>

#include "core/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

Next code_points(Interpreter& in, const Value& value) {
    return [&in, value, at = size_t{0}](Value& item) mutable {
        const Text& text = *value.text();
        if (at >= text.size()) return false;
        size_t end = at + 1;
        while (end < text.size() && (static_cast<unsigned char>(text.bytes()[end]) & 0xC0) == 0x80)
            ++end;
        item = in.text(text.slice(at, end));
        at = end;
        return true;
    };
}

Next keys(const Value& value) {
    return [value, i = size_t{0}](Value& item) mutable {
        const auto& items = value.dict()->items;
        if (i >= items.size()) return false;
        item = items[i++].first;
        return true;
    };
}

Next elements(const Value& value) {
    return [value, i = size_t{0}](Value& item) mutable {
        const Items& items = *value.items();
        if (i >= items.size()) return false;
        item = items[i++];
        return true;
    };
}

// Python's index of a sequence, nullopt outside it.
std::optional<size_t> position(const Value& key, size_t size) {
    const auto index = key.integer();
    const auto end = static_cast<int64_t>(size);
    if (!index || *index < -end || *index >= end) return std::nullopt;
    return static_cast<size_t>(*index < 0 ? *index + end : *index);
}

std::optional<Value> element(Interpreter& in, const Value& value, const Value& key) {
    if (const Items* items = value.items()) {
        const auto at = position(key, items->size());
        return at ? std::optional<Value>((*items)[*at]) : std::nullopt;
    }
    if (const Text* text = value.text()) {
        if (!key.integer()) return std::nullopt;
        in.charge_bytes(text->size());
        const auto offsets = code_point_offsets(text->bytes());
        const auto at = position(key, offsets.size() - 1);
        return at ? std::optional<Value>(in.text(text->slice(offsets[*at], offsets[*at + 1])))
                  : std::nullopt;
    }
    if (const Dict* dict = value.dict()) {
        // A list as a key is a TypeError, which Jinja takes as a missing item.
        if (key.list() || key.dict()) return std::nullopt;
        const Value* found = find_key(in, *dict, key);
        return found ? std::optional<Value>(*found) : std::nullopt;
    }
    Object* object = value.object();
    return object ? object->item(in, key) : std::nullopt;
}

// Names such as __class__, which every value has in Python and the sandbox blocks.
bool is_internal(std::string_view name) {
    return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

// What Python's getattr finds.
std::optional<Value> python_attribute(Interpreter& in, const Value& value, std::string_view name) {
    if (Object* object = value.object()) return object->attribute(in, name);
    if (const Tuple* tuple = value.tuple(); tuple && tuple->is_group) {
        if (name == "grouper") return tuple->items[0];
        if (name == "list") return tuple->items[1];
    }
    return find_method(in, value, name);
}

int64_t bound(const Value* given, int64_t otherwise) {
    if (!given || given->is_none()) return otherwise;
    const auto number = given->integer();
    require(number.has_value(), "slice indices must be integers or None, not ", type_name(*given));
    return *number;
}

// Python's slice(begin, end, step).indices(size).
struct Indices {
    int64_t begin, end, step;
};

Indices slice_indices(int64_t size, const Value* begin, const Value* end, const Value* step) {
    const int64_t by = bound(step, 1);
    require(by != 0, "slice step cannot be zero");
    const bool forward = by > 0;
    const int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
    const auto place = [&](const Value* given, int64_t otherwise) {
        if (!given || given->is_none()) return otherwise;
        const int64_t at = bound(given, 0);
        return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, low, high);
    };
    return {place(begin, forward ? low : high), place(end, forward ? high : low), by};
}

std::vector<size_t> slice_positions(Interpreter& in, int64_t size, const Value* begin,
                                    const Value* end, const Value* step) {
    const Indices indices = slice_indices(size, begin, end, step);
    const bool forward = indices.step > 0;
    std::vector<size_t> positions;
    int64_t at = indices.begin;
    while (forward ? at < indices.end : at > indices.end) {
        positions.push_back(static_cast<size_t>(at));
        if (indices.step > size || indices.step < -size) break;
        at += indices.step;
    }
    in.charge(1 + positions.size() / 64);
    return positions;
}

Value slice_text(Interpreter& in, const Text& text, const Value* begin, const Value* end,
                 const Value* step) {
    in.charge_bytes(text.size());
    const auto offsets = code_point_offsets(text.bytes());
    const auto positions =
        slice_positions(in, static_cast<int64_t>(offsets.size()) - 1, begin, end, step);
    Text result;
    for (size_t i = 0; i < positions.size();) {
        size_t last = i;  // of a run of neighbours
        while (last + 1 < positions.size() && positions[last + 1] == positions[last] + 1) ++last;
        result.append(text, offsets[positions[i]], offsets[positions[last] + 1]);
        i = last + 1;
    }
    result.is_markup = text.is_markup;
    return in.text(std::move(result));
}

}  // namespace

bool is_iterable(const Value& value) {
    const Object* object = value.object();
    return value.text() || value.items() || value.dict() || value.is_undefined() ||
           (object && object->is_iterable());
}

Next iterate(Interpreter& in, const Value& value) {
    require(is_iterable(value), "'", type_name(value), "' object is not iterable");
    Next next = [](Value&) { return false; };
    if (value.text()) next = code_points(in, value);
    if (value.dict()) next = keys(value);
    if (value.items()) next = elements(value);
    if (Object* object = value.object())
        next = [value, inner = object->iterate()](Value& item) { return inner(item); };
    return [&in, next = std::move(next)](Value& item) {
        in.charge(1);
        return next(item);
    };
}

Items collect(Interpreter& in, const Value& value) {
    if (const Items* items = value.items()) {
        in.charge(1 + items->size());
        return *items;
    }
    Items items;
    const Next next = iterate(in, value);
    Value item;
    while (next(item)) items.push_back(item);
    return items;
}

std::optional<size_t> length_of(const Value& value) {
    if (value.is_undefined()) return 0;
    if (const Text* text = value.text()) return code_point_offsets(text->bytes()).size() - 1;
    if (const Items* items = value.items()) return items->size();
    if (const Dict* dict = value.dict()) return dict->items.size();
    Object* object = value.object();
    return object ? object->length() : std::nullopt;
}

Value attribute(Interpreter& in, const Value& value, std::string_view name) {
    require_defined(value);
    if (is_internal(name))
        return undefined(concat("access to attribute '", name, "' of '", type_name(value),
                                "' object is unsafe."));
    if (const auto found = python_attribute(in, value, name)) return *found;
    if (const Dict* dict = value.dict()) {
        in.charge(1 + dict->items.size() / 8);
        if (const Value* found = dict->find(name)) return *found;
    }
    return undefined_attribute(value, name);
}

Value item(Interpreter& in, const Value& value, const Value& key) {
    require_defined(value);
    if (const auto found = element(in, value, key)) return *found;
    if (const Text* name = key.text()) {
        if (is_internal(name->bytes()))
            return undefined(concat("access to attribute '", name->bytes(), "' is unsafe."));
        if (const auto found = python_attribute(in, value, name->bytes())) return *found;
        return undefined_attribute(value, name->bytes());
    }
    return undefined(concat(object_type(value), " has no element ", repr_of(in, key).bytes()));
}

Value slice(Interpreter& in, const Value& value, const Value* begin, const Value* end,
            const Value* step) {
    require_defined(value);
    if (const Text* text = value.text()) return slice_text(in, *text, begin, end, step);
    if (const auto* range = value.as<Range>()) {
        const auto size = static_cast<int64_t>(collect(in, value).size());
        const Indices indices = slice_indices(size, begin, end, step);
        return in.object(range->sliced(indices.begin, indices.end, indices.step));
    }
    const Items* items = value.items();
    require(items, "'", type_name(value), "' object cannot be sliced");
    Items result;
    for (const size_t at :
         slice_positions(in, static_cast<int64_t>(items->size()), begin, end, step))
        result.push_back((*items)[at]);
    return value.tuple() ? in.tuple(std::move(result)) : in.list(std::move(result));
}

Value call(Interpreter& in, const Value& function, Args& args) {
    require_defined(function);
    Object* object = function.object();
    require(object && object->is_callable(), "'", type_name(function), "' object is not callable");
    in.charge(1);
    const Value kept = function;  // the call may drop the last other value
    return object->call(in, args);
}

}  // namespace hark::jinja
