// Schemas that must all hold for one value, and what they say together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/constrain/json_number.h"
#include "text/constrain/schema_reader.h"

namespace hark {

// One of them. An alternative has been chosen of those of its groups whose bit is set.
struct SchemaItem {
    int32_t schema = 0;
    uint32_t chosen = 0;
    // Schemas that lead here without a property or an item between.
    std::vector<int32_t> ancestors;
};
using Conjunction = std::vector<SchemaItem>;

// Adds a schema, and those that it names with $ref and allOf. Throws Error if one of them leads to
// itself.
void add_schema(SchemaReader& reader, int32_t schema, const std::vector<int32_t>& ancestors,
                Conjunction& all);
// Equal for the same schemas and choices.
std::vector<int64_t> key_of(const Conjunction& all);

// The schemas of a property, and of the item at `index`.
Conjunction property_of(SchemaReader& reader, const Conjunction& all, const std::string& name);
Conjunction item_of(SchemaReader& reader, const Conjunction& all, int64_t index);

// What they say together, except groups and what is inside objects and arrays.
struct JoinedSchema {
    uint32_t types = kAllJsonTypes;
    std::optional<std::vector<Subschema::Json>> values;  // only these
    NumberRange numbers;
    int64_t min_length = 0, min_items = 0, min_properties = 0;
    std::optional<int64_t> max_length, max_items, max_properties;
    std::vector<std::string> patterns, formats;
    std::vector<std::string> required;  // each once
    uint32_t speaks_of = 0;             // kinds of values that keywords are about
};
JoinedSchema join(SchemaReader& reader, const Conjunction& all);

// Whether no value fits both, as far as it can be told.
bool are_disjoint(SchemaReader& reader, const Conjunction& a, const Conjunction& b, int depth = 0);

// Whether a value fits the schemas, formats aside. Throws Error if one of them leads to itself.
bool fits(SchemaReader& reader, const Conjunction& all, const Subschema::Json& value,
          int depth = 0);

}  // namespace hark
