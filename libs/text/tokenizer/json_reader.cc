#include "text/tokenizer/json_reader.h"

#include "core/error.h"

namespace hark {

using nlohmann::json;

namespace {

const json& value_of(const json& object, const char* key) {
    static const json kNull;
    return object.is_object() && object.contains(key) ? object[key] : kNull;
}

}  // namespace

bool JsonReader::flag(const json& object, const char* key, bool otherwise) const {
    const json& value = value_of(object, key);
    if (value.is_null()) return otherwise;
    require(value.is_boolean(), where_, ": ", key, ": expected true or false, found ",
            value.type_name());
    return value.get<bool>();
}

int64_t JsonReader::integer(const json& object, const char* key, int64_t otherwise, int64_t min,
                            int64_t max) const {
    const json& value = value_of(object, key);
    if (value.is_null()) return otherwise;
    const bool whole = value.is_number_integer() &&
                       !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
    require(whole && value.get<int64_t>() >= min && value.get<int64_t>() <= max, where_, ": ", key,
            ": expected a whole number from ", min, " to ", max, ", found ",
            value.is_number() ? value.dump() : value.type_name());
    return value.get<int64_t>();
}

std::string JsonReader::text(const json& object, const char* key) const {
    const json& value = value_of(object, key);
    require(value.is_string(), where_, ": ", key, ": expected a text, found ", value.type_name());
    return value.get<std::string>();
}

std::string JsonReader::text_or(const json& object, const char* key,
                                const std::string& otherwise) const {
    return value_of(object, key).is_null() ? otherwise : text(object, key);
}

const json& JsonReader::list(const json& object, const char* key) const {
    static const json kEmpty = json::array();
    const json& value = value_of(object, key);
    if (value.is_null()) return kEmpty;
    require(value.is_array(), where_, ": ", key, ": expected a list, found ", value.type_name());
    return value;
}

void JsonReader::require_absent(const json& object, const char* key) const {
    const json& value = value_of(object, key);
    require(value.is_null() || value == "" || value == false || value == 0, where_, ": ", key,
            " is not supported: expected none, found ", json_text(value).substr(0, 80));
}

std::string JsonReader::kind(const json& object, const std::string& part) const {
    require(object.is_object(), where_, ": expected the ", part, " as an object, found ",
            object.type_name());
    return text(object, "type");
}

void JsonReader::refuse(const std::string& part, const std::string& kind) const {
    fail(where_, ": the ", part, " '", kind, "' is not supported");
}

Pattern JsonReader::pattern(const json& object) const {
    const json& value = value_of(object, "pattern");
    require(value.is_object() && value.size() == 1, where_,
            ": pattern: expected an object with String or Regex, found ", value.type_name());
    if (value.contains("String")) return Pattern::literal(text(value, "String"));
    return Pattern::regex(text(value, "Regex"), where_);
}

}  // namespace hark
