// Filters of lists and mappings: jinja2 3.1.6, filters.py.
#include <algorithm>

#include "core/error.h"
#include "text/jinja/case.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/library.h"
#include "text/jinja/objects.h"
#include "text/jinja/operations.h"

namespace hark::jinja {
namespace {

Value generator(Interpreter& in, const Value& source, Next next) {
    return in.object(std::make_shared<Generator>(std::move(next)), source.height());
}

Value default_filter(Interpreter&, const Value& value, Args& args) {
    const Bound bound("default", args, {"default_value", "boolean"});
    const bool replaces = value.is_undefined() || (bound.flag(1) && !is_true(value));
    if (!replaces) return value;
    return bound[0] ? *bound[0] : Value(std::make_shared<const Text>());
}

Value length(Interpreter&, const Value& value, Args& args) {
    const Bound bound("length", args, {});
    const auto size = length_of(value);
    require(size.has_value(), "object of type '", type_name(value), "' has no len()");
    return static_cast<int64_t>(*size);
}

Value list(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("list", args, {});
    return in.list(collect(in, value));
}

Value first(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("first", args, {});
    Value item;
    return iterate(in, value)(item) ? item : undefined("No first item, sequence was empty.");
}

bool is_reversible(const Value& value) {
    return value.text() || value.items() || value.dict() || value.is_undefined() ||
           value.as<Range>() || value.as<View>();
}

Value last(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("last", args, {});
    require(is_reversible(value), "'", type_name(value), "' object is not reversible");
    const Items items = collect(in, value);
    return items.empty() ? undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("reverse", args, {});
    if (value.text()) {
        const Value step = int64_t{-1};
        return slice(in, value, nullptr, nullptr, &step);
    }
    require(is_iterable(value), "argument must be iterable");
    Items items = collect(in, value);
    std::reverse(items.begin(), items.end());
    if (!is_reversible(value)) return in.list(std::move(items));
    const Value kept = in.list(std::move(items));
    return generator(in, kept, iterate(in, kept));
}

Value join(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("join", args, {"d", "attribute"});
    const Text separator = bound[0] ? str_of(in, *bound[0]) : Text();
    const Next next = iterate(in, value);
    Text joined;
    Value item;
    for (bool is_first = true; next(item); is_first = false) {
        if (!is_first) joined.append(separator);
        joined.append(str_of(in, bound.some(1) ? look_up(in, item, *bound[1]) : item));
    }
    return in.text(std::move(joined));
}

Value items(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("items", args, {});
    if (value.is_undefined()) return generator(in, value, [](Value&) { return false; });
    // Its error comes with the first item, as in Python's generators.
    return generator(in, value, [&in, value, i = size_t{0}](Value& item) mutable {
        require(value.dict(), "Can only get item pairs from a mapping.");
        const auto& pairs = value.dict()->items;
        if (i >= pairs.size()) return false;
        item = in.tuple({pairs[i].first, pairs[i].second});
        ++i;
        return true;
    });
}

Value batch(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("batch", args, {"linecount", "fill_with"}, 1);
    const int64_t count = bound.integer(0, 1);
    Items batches, row;
    for (const Value& item : collect(in, value)) {
        if (static_cast<int64_t>(row.size()) == count)
            batches.push_back(in.list(std::move(row))), row.clear();
        row.push_back(item);
    }
    if (!row.empty()) {
        const auto missing = count - static_cast<int64_t>(row.size());
        if (bound.some(1) && missing > 0) {
            in.charge(static_cast<uint64_t>(missing));
            row.insert(row.end(), static_cast<size_t>(missing), *bound[1]);
        }
        batches.push_back(in.list(std::move(row)));
    }
    const Value kept = in.list(std::move(batches));
    return generator(in, kept, iterate(in, kept));
}

Value slice_filter(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("slice", args, {"slices", "fill_with"}, 1);
    const int64_t count = bound.integer(0, 1);
    require(count != 0, "integer division or modulo by zero");
    in.charge(static_cast<uint64_t>(std::max<int64_t>(count, 0)));
    const Items all = collect(in, value);
    const auto size = static_cast<int64_t>(all.size());
    Items slices;
    int64_t begin = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t end = begin + size / count + (i < size % count);
        Items part(all.begin() + begin, all.begin() + end);
        if (bound.some(1) && i >= size % count) part.push_back(*bound[1]);
        slices.push_back(in.list(std::move(part)));
        begin = end;
    }
    const Value kept = in.list(std::move(slices));
    return generator(in, kept, iterate(in, kept));
}

// The filters' key: strings in lower case unless case_sensitive.
Value without_case(Interpreter& in, const Value& value, bool case_sensitive) {
    return value.text() && !case_sensitive ? in.text(lower(*value.text())) : value;
}

Value dict_sort(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("dictsort", args, {"case_sensitive", "by", "reverse"});
    const std::string by = bound[1] ? bound.text(1).bytes() : "key";
    require(by == "key" || by == "value", "You can only sort by either \"key\" or \"value\"");
    require_defined(value);
    require(value.dict(), "dictsort takes a mapping, not ", type_name(value));
    std::vector<std::pair<Value, Value>> keyed;  // key, pair
    for (const auto& [name, item] : value.dict()->items)
        keyed.emplace_back(without_case(in, by == "key" ? name : item, bound.flag(0)),
                           in.tuple({name, item}));
    return in.list(sorted(in, std::move(keyed), bound.flag(2)));
}

// A list of the attributes that a path with commas names.
Value sort_key(Interpreter& in, const Value& item, const Value* path, bool case_sensitive) {
    if (!path || path->is_none()) return in.list({without_case(in, item, case_sensitive)});
    if (!path->text()) return in.list({without_case(in, look_up(in, item, *path), case_sensitive)});
    Items key;
    const std::string& names = path->text()->bytes();
    for (size_t begin = 0; begin <= names.size();) {
        const size_t end = std::min(names.find(',', begin), names.size());
        const Value name = in.text(names.substr(begin, end - begin));
        key.push_back(without_case(in, look_up(in, item, name), case_sensitive));
        begin = end + 1;
    }
    return in.list(std::move(key));
}

Value sort(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("sort", args, {"reverse", "case_sensitive", "attribute"});
    std::vector<std::pair<Value, Value>> keyed;
    for (const Value& item : collect(in, value))
        keyed.emplace_back(sort_key(in, item, bound[2], bound.flag(1)), item);
    return in.list(sorted(in, std::move(keyed), bound.flag(0)));
}

Value key_of(Interpreter& in, const Value& item, const Value* path, bool case_sensitive) {
    return without_case(in, path ? look_up(in, item, *path) : item, case_sensitive);
}

Value unique(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("unique", args, {"case_sensitive", "attribute"});
    std::vector<std::pair<Value, Value>> seen;
    Items kept;
    for (const Value& item : collect(in, value)) {
        const size_t before = seen.size();
        set_key(in, seen, key_of(in, item, bound.some(1), bound.flag(0)), true);
        if (seen.size() > before) kept.push_back(item);
    }
    const Value list = in.list(std::move(kept));
    return generator(in, list, iterate(in, list));
}

template <int sign>
Value extreme(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("min or max", args, {"case_sensitive", "attribute"});
    Value best, best_key;
    bool any = false;
    for (const Value& item : collect(in, value)) {
        const Value key = key_of(in, item, bound.some(1), bound.flag(0));
        if (any && order(in, key, best_key, sign > 0 ? ">" : "<") != sign) continue;
        best = item;
        best_key = key;
        any = true;
    }
    return any ? best : undefined("No aggregated item, sequence was empty.");
}

Value group_by(Interpreter& in, const Value& value, Args& args) {
    const Bound bound("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
    const auto found = [&](const Value& item) {
        const Value attribute = look_up(in, item, *bound[0]);
        return attribute.is_undefined() && bound.some(1) ? *bound[1] : attribute;
    };
    std::vector<std::pair<Value, Value>> keyed;
    for (const Value& item : collect(in, value))
        keyed.emplace_back(without_case(in, found(item), bound.flag(2)), item);
    const Items all = sorted(in, std::move(keyed), false);
    Items groups, group;
    for (size_t i = 0; i < all.size(); ++i) {
        group.push_back(all[i]);
        const auto key = [&](size_t at) { return without_case(in, found(all[at]), bound.flag(2)); };
        if (i + 1 < all.size() && equal(in, key(i), key(i + 1))) continue;
        const Value name = found(group.front());
        groups.push_back(in.group(name, in.list(std::move(group))));
        group.clear();
    }
    return in.list(std::move(groups));
}

}  // namespace

Filter find_list_filter(std::string_view name) {
    static constexpr Named<Filter> kFilters[] = {
        {"batch", batch},        {"count", length},
        {"d", default_filter},   {"default", default_filter},
        {"dictsort", dict_sort}, {"first", first},
        {"groupby", group_by},   {"items", items},
        {"join", join},          {"last", last},
        {"length", length},      {"list", list},
        {"max", extreme<1>},     {"min", extreme<-1>},
        {"reverse", reverse},    {"slice", slice_filter},
        {"sort", sort},          {"unique", unique},
    };
    return find_named(kFilters, name);
}

}  // namespace hark::jinja
