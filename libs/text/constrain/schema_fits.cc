// Whether a value fits a schema: what enum and const are compared by.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/ranges.h"
#include "text/constrain/schema_conjunction.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace hark {
namespace {

using Json = Subschema::Json;

constexpr int kMostFitLevels = 100;

uint32_t type_of_value(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null:
            return kJsonNull;
        case Json::value_t::boolean:
            return kJsonBoolean;
        case Json::value_t::object:
            return kJsonObject;
        case Json::value_t::array:
            return kJsonArray;
        case Json::value_t::string:
            return kJsonString;
        case Json::value_t::number_float:
            return value.get<double>() == std::floor(value.get<double>()) ? kJsonInteger
                                                                          : kJsonFraction;
        default:
            return kJsonInteger;
    }
}

bool count_fits(size_t count, int64_t least, const std::optional<int64_t>& most) {
    const auto n = static_cast<int64_t>(count);
    return n >= least && n <= most.value_or(INT64_MAX);
}

bool number_fits(const Subschema& schema, const Json& value) {
    for (const Subschema::Bound& bound : schema.least)
        if (value < bound.value || (bound.exclusive && value == bound.value)) return false;
    for (const Subschema::Bound& bound : schema.most)
        if (value > bound.value || (bound.exclusive && value == bound.value)) return false;
    NumberRange multiples;
    multiples.multiple_of = schema.multiple_of;
    if (multiples.empty()) return true;
    const std::string text = value.dump();
    return number_within(multiples).matches(std::u32string(text.begin(), text.end()));
}

bool string_fits(SchemaReader& reader, const Subschema& schema, const Json& value) {
    const std::u32string text = to_code_points(value.get<std::string>());
    return count_fits(text.size(), schema.min_length, schema.max_length) &&
           std::all_of(schema.patterns.begin(), schema.patterns.end(),
                       [&](const std::string& one) { return reader.pattern(one).matches(text); });
}

bool object_fits(SchemaReader& reader, const Conjunction& self, const Subschema& schema,
                 const Json& value, int depth) {
    if (!count_fits(value.size(), schema.min_properties, schema.max_properties)) return false;
    for (const std::string& name : schema.required)
        if (!value.contains(name)) return false;
    for (const auto& [name, one] : value.items())
        if (!fits(reader, property_of(reader, self, name), one, depth + 1)) return false;
    return true;
}

bool array_fits(SchemaReader& reader, const Conjunction& self, const Subschema& schema,
                const Json& value, int depth) {
    if (!count_fits(value.size(), schema.min_items, schema.max_items)) return false;
    for (size_t i = 0; i < value.size(); ++i)
        if (!fits(reader, item_of(reader, self, static_cast<int64_t>(i)), value[i], depth + 1))
            return false;
    return true;
}

bool group_fits(SchemaReader& reader, const Subschema::Group& group, const Json& value, int depth) {
    const auto n =
        std::count_if(group.alternatives.begin(), group.alternatives.end(), [&](int32_t one) {
            Conjunction all;
            add_schema(reader, one, {}, all);
            return fits(reader, all, value, depth + 1);
        });
    return group.exclusive ? n == 1 : n > 0;
}

// The schema itself, without what $ref and allOf name.
bool item_fits(SchemaReader& reader, int32_t id, const Json& value, int depth) {
    require(depth <= kMostFitLevels, "schema: ", reader[id].pointer, ": compared at more than ",
            kMostFitLevels, " levels; it may refer to itself");
    const Subschema& schema = reader[id];
    const uint32_t type = type_of_value(value);
    if (schema.never || (schema.types.value_or(kAllJsonTypes) & type) == 0) return false;
    for (const std::vector<Json>& values : schema.values)
        if (std::none_of(values.begin(), values.end(), [&](const Json& one) {
                return nlohmann::json(one) == nlohmann::json(value);
            }))
            return false;
    const Conjunction self = {{id, 0, {}}};
    const bool inside_fits = (type & kJsonNumber) != 0 ? number_fits(schema, value)
                             : type == kJsonString     ? string_fits(reader, schema, value)
                             : type == kJsonObject ? object_fits(reader, self, schema, value, depth)
                             : type == kJsonArray  ? array_fits(reader, self, schema, value, depth)
                                                   : true;
    return inside_fits && std::all_of(schema.groups.begin(), schema.groups.end(),
                                      [&](const Subschema::Group& group) {
                                          return group_fits(reader, group, value, depth);
                                      });
}

}  // namespace

bool fits(SchemaReader& reader, const Conjunction& all, const Json& value, int depth) {
    return std::all_of(all.begin(), all.end(), [&](const SchemaItem& item) {
        return item_fits(reader, item.schema, value, depth);
    });
}

}  // namespace hark
