#include "text/constrain/schema_conjunction.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/ranges.h"
#include "text/unicode.h"

namespace hark {
namespace {

using Json = Subschema::Json;

constexpr int kDeepestComparison = 8;

void keep_least(std::optional<int64_t>& most, const std::optional<int64_t>& other) {
    if (other) most = std::min(most.value_or(*other), *other);
}

// Equal as JSON Schema has it: objects in any order.
bool same_value(const Json& a, const Json& b) { return nlohmann::json(a) == nlohmann::json(b); }

bool is_among(const std::vector<Json>& values, const Json& value) {
    return std::any_of(values.begin(), values.end(),
                       [&](const Json& one) { return same_value(one, value); });
}

bool patterns_are_disjoint(SchemaReader& reader, const JoinedSchema& a, const JoinedSchema& b) {
    std::optional<CharAutomaton> both;
    for (const JoinedSchema* one : {&a, &b})
        for (const std::string& pattern : one->patterns)
            both = both ? intersection(*both, reader.pattern(pattern)) : reader.pattern(pattern);
    return both && both->empty();
}

bool ranges_are_disjoint(const JoinedSchema& a, const JoinedSchema& b) {
    for (const auto& [least, most] : {std::pair{&a, &b}, std::pair{&b, &a}})
        for (const NumberBound& low : least->numbers.least)
            for (const NumberBound& high : most->numbers.most)
                if (low.value > high.value ||
                    (low.value == high.value && (low.exclusive || high.exclusive)))
                    return true;
    return false;
}

bool counts_are_disjoint(int64_t least_a, const std::optional<int64_t>& most_a, int64_t least_b,
                         const std::optional<int64_t>& most_b) {
    return least_a > most_b.value_or(INT64_MAX) || least_b > most_a.value_or(INT64_MAX);
}

// Whether no value fits, as far as it can be told.
bool is_never(SchemaReader& reader, const Conjunction& all) { return join(reader, all).types == 0; }

bool objects_are_disjoint(SchemaReader& reader, const Conjunction& a, const Conjunction& b,
                          const JoinedSchema& joined_a, const JoinedSchema& joined_b, int depth) {
    if (counts_are_disjoint(joined_a.min_properties, joined_a.max_properties,
                            joined_b.min_properties, joined_b.max_properties))
        return true;
    for (const auto& [one, other, names] :
         {std::tuple{&a, &b, &joined_a.required}, std::tuple{&b, &a, &joined_b.required}})
        for (const std::string& name : *names) {
            const Conjunction mine = property_of(reader, *one, name);
            const Conjunction its = property_of(reader, *other, name);
            // A property that one needs and the other does not have, or has with other values: a
            // value of both has it.
            if (is_never(reader, its) || are_disjoint(reader, mine, its, depth + 1)) return true;
        }
    return false;
}

bool arrays_are_disjoint(SchemaReader& reader, const Conjunction& a, const Conjunction& b,
                         const JoinedSchema& joined_a, const JoinedSchema& joined_b, int depth) {
    if (counts_are_disjoint(joined_a.min_items, joined_a.max_items, joined_b.min_items,
                            joined_b.max_items))
        return true;
    const int64_t both = std::min<int64_t>(std::max(joined_a.min_items, joined_b.min_items), 16);
    for (int64_t i = 0; i < both; ++i)
        if (are_disjoint(reader, item_of(reader, a, i), item_of(reader, b, i), depth + 1))
            return true;
    return false;
}

}  // namespace

void add_schema(SchemaReader& reader, int32_t schema, const std::vector<int32_t>& ancestors,
                Conjunction& all) {
    require(!contains(ancestors, schema), "schema: ", reader[schema].pointer,
            " refers to itself without a property or an item between");
    const auto same = [&](const SchemaItem& item) { return item.schema == schema; };
    if (std::any_of(all.begin(), all.end(), same)) return;
    require(ancestors.size() < 200, "schema: ", reader[schema].pointer,
            " is reached by more than 200 $ref, allOf and anyOf in a row");
    all.push_back({schema, 0, ancestors});
    std::vector<int32_t> path = ancestors;
    path.push_back(schema);
    for (const int32_t part : std::vector<int32_t>(reader[schema].all))
        add_schema(reader, part, path, all);
}

std::vector<int64_t> key_of(const Conjunction& all) {
    std::vector<int64_t> key;
    for (const SchemaItem& item : all)
        key.push_back(int64_t{item.schema} << 32 | static_cast<int64_t>(item.chosen));
    std::sort(key.begin(), key.end());
    return key;
}

Conjunction property_of(SchemaReader& reader, const Conjunction& all, const std::string& name) {
    Conjunction inside;
    for (const SchemaItem& item : all) {
        const Subschema& schema = reader[item.schema];
        bool is_known = false;
        const auto add = [&](int32_t id) {
            is_known = true;
            add_schema(reader, id, {}, inside);
        };
        for (const auto& [property, id] : schema.properties)
            if (property == name) add(id);
        for (const auto& [pattern, id] : schema.pattern_properties)
            if (reader.pattern(pattern).matches(to_code_points(name))) add(id);
        if (!is_known && schema.additional) add(*schema.additional);
    }
    return inside;
}

Conjunction item_of(SchemaReader& reader, const Conjunction& all, int64_t index) {
    Conjunction inside;
    for (const SchemaItem& item : all) {
        const Subschema& schema = reader[item.schema];
        if (index < std::ssize(schema.prefix_items))
            add_schema(reader, schema.prefix_items[static_cast<size_t>(index)], {}, inside);
        else if (schema.items)
            add_schema(reader, *schema.items, {}, inside);
    }
    return inside;
}

JoinedSchema join(SchemaReader& reader, const Conjunction& all) {
    JoinedSchema joined;
    for (const SchemaItem& item : all) {
        const Subschema& schema = reader[item.schema];
        if (schema.never) joined.types = 0;
        joined.types &= schema.types.value_or(kAllJsonTypes);
        joined.speaks_of |= schema.speaks_of;
        for (const std::vector<Json>& values : schema.values) {
            std::vector<Json> kept;
            for (const Json& value : values)
                if (!is_among(kept, value) && (!joined.values || is_among(*joined.values, value)))
                    kept.push_back(value);
            joined.values = std::move(kept);
        }
        for (const Subschema::Bound& bound : schema.least)
            joined.numbers.least.push_back({bound.value, bound.exclusive});
        for (const Subschema::Bound& bound : schema.most)
            joined.numbers.most.push_back({bound.value, bound.exclusive});
        for (const Json& multiple : schema.multiple_of)
            joined.numbers.multiple_of.push_back(multiple);
        joined.min_length = std::max(joined.min_length, schema.min_length);
        joined.min_items = std::max(joined.min_items, schema.min_items);
        joined.min_properties = std::max(joined.min_properties, schema.min_properties);
        keep_least(joined.max_length, schema.max_length);
        keep_least(joined.max_items, schema.max_items);
        keep_least(joined.max_properties, schema.max_properties);
        for (const std::string& pattern : schema.patterns)
            if (!contains(joined.patterns, pattern)) joined.patterns.push_back(pattern);
        if (!schema.format.empty() && !contains(joined.formats, schema.format))
            joined.formats.push_back(schema.format);
        for (const std::string& name : schema.required)
            if (!contains(joined.required, name)) joined.required.push_back(name);
    }
    return joined;
}

bool are_disjoint(SchemaReader& reader, const Conjunction& a, const Conjunction& b, int depth) {
    if (depth > kDeepestComparison) return false;
    const JoinedSchema joined_a = join(reader, a), joined_b = join(reader, b);
    for (const auto& [one, other] : {std::pair{&joined_a, &b}, std::pair{&joined_b, &a}})
        if (one->values)
            return std::none_of(one->values->begin(), one->values->end(), [&](const Json& value) {
                return fits(reader, *other, value) && fits(reader, other == &b ? a : b, value);
            });
    const uint32_t types = joined_a.types & joined_b.types;
    if ((types & (kJsonNull | kJsonBoolean)) != 0) return false;
    if ((types & kJsonNumber) != 0 && !ranges_are_disjoint(joined_a, joined_b)) return false;
    if ((types & kJsonString) != 0 &&
        !counts_are_disjoint(joined_a.min_length, joined_a.max_length, joined_b.min_length,
                             joined_b.max_length) &&
        !patterns_are_disjoint(reader, joined_a, joined_b))
        return false;
    if ((types & kJsonObject) != 0 &&
        !objects_are_disjoint(reader, a, b, joined_a, joined_b, depth))
        return false;
    return (types & kJsonArray) == 0 ||
           arrays_are_disjoint(reader, a, b, joined_a, joined_b, depth);
}

}  // namespace hark
