// A JSON schema's keywords, read and checked where they are needed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json/json.h"
#include "text/constrain/regular.h"

namespace hark {

// Kinds of values, as bits. A number is an integer or has a fraction.
enum JsonType : uint32_t {
    kJsonNull = 1,
    kJsonBoolean = 2,
    kJsonObject = 4,
    kJsonArray = 8,
    kJsonString = 16,
    kJsonInteger = 32,
    kJsonFraction = 64,
    kJsonNumber = kJsonInteger | kJsonFraction,
    kAllJsonTypes = 127,
};

// One schema: an object, true or false. Other schemas are their numbers in the reader.
struct Subschema {
    using Json = nlohmann::ordered_json;

    struct Bound {
        Json value;
        bool exclusive = false;
    };
    // anyOf, or oneOf.
    struct Group {
        const char* keyword = "";
        std::vector<int32_t> alternatives;
        bool exclusive = false;
    };

    std::string pointer;  // its place: "#/properties/a"
    bool never = false;   // false
    std::optional<uint32_t> types;
    std::vector<std::vector<Json>> values;  // enum, const: one of each list
    std::vector<Bound> least, most;         // of a number
    std::vector<Json> multiple_of;
    int64_t min_length = 0, min_items = 0, min_properties = 0;
    std::optional<int64_t> max_length, max_items, max_properties;
    std::vector<std::string> patterns;
    std::string format;
    std::vector<std::pair<std::string, int32_t>> properties, pattern_properties;
    std::vector<std::string> required;
    std::optional<int32_t> additional, items;
    std::vector<int32_t> prefix_items, all;  // all: allOf, and what $ref names
    std::vector<Group> groups;
    // Which kinds of keywords it has, as types.
    uint32_t speaks_of = 0;
    bool has_properties = false;  // properties or patternProperties
};

class SchemaReader {
  public:
    using Json = nlohmann::ordered_json;

    // Keeps the reference.
    explicit SchemaReader(const Json& root) : root_(root) {}

    // The schema at a place, such as "#/$defs/a".
    int32_t at(const std::string& pointer);
    // Reads it first, unless it has been read. Throws Error if there is no such place, and naming a
    // keyword and its place if it is not supported or has a wrong value.
    const Subschema& operator[](int32_t schema);
    // The texts that match a pattern of the schema.
    const CharAutomaton& pattern(const std::string& pattern);

  private:
    void read(const std::string& keyword, const Json& value, Subschema& schema);
    bool read_number_keyword(const std::string& keyword, const Json& value, Subschema& schema);
    bool read_string_keyword(const std::string& keyword, const Json& value, Subschema& schema);
    bool read_object_keyword(const std::string& keyword, const Json& value, Subschema& schema);
    bool read_array_keyword(const std::string& keyword, const Json& value, Subschema& schema);
    bool read_other_keyword(const std::string& keyword, const Json& value, Subschema& schema);
    const Json& resolve(const std::string& pointer) const;
    void check_pattern(const std::string& text, const std::string& place);
    std::vector<std::pair<std::string, int32_t>> read_map(const Json& value,
                                                          const std::string& place);
    std::vector<int32_t> read_list(const Json& value, const std::string& place);

    const Json& root_;
    std::deque<Subschema> schemas_;
    std::vector<bool> is_read_;
    std::map<std::string, int32_t> known_;  // by place
    std::map<std::string, CharAutomaton> patterns_;
};

}  // namespace hark
