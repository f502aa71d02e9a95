#include "text/constrain/schema_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/ranges.h"
#include "text/constrain/regex_pattern.h"

namespace hark {
namespace {

using Json = SchemaReader::Json;

// Keywords without a say in what is valid.
constexpr std::array kAnnotations = {"title",
                                     "description",
                                     "default",
                                     "examples",
                                     "example",
                                     "$schema",
                                     "$comment",
                                     "deprecated",
                                     "readOnly",
                                     "writeOnly",
                                     "$defs",
                                     "definitions",
                                     "contentEncoding",
                                     "contentMediaType",
                                     "contentSchema",
                                     "$vocabulary",
                                     "externalDocs",
                                     "discriminator",
                                     "xml"};

constexpr std::array<std::pair<const char*, uint32_t>, 7> kTypes = {{{"null", kJsonNull},
                                                                     {"boolean", kJsonBoolean},
                                                                     {"object", kJsonObject},
                                                                     {"array", kJsonArray},
                                                                     {"string", kJsonString},
                                                                     {"integer", kJsonInteger},
                                                                     {"number", kJsonNumber}}};

[[noreturn]] void wrong_value(const std::string& place, const char* expected, const Json& value) {
    fail("schema: ", place, ": expected ", expected, ", found ", value.type_name());
}

uint32_t type_named(const Json& name, const std::string& place) {
    if (!name.is_string()) wrong_value(place, "a type's name", name);
    for (const auto& [text, type] : kTypes)
        if (name == text) return type;
    fail("schema: ", place,
         ": expected null, boolean, object, array, string, integer or number, "
         "found ",
         name.dump());
}

int64_t count_of(const Json& value, const std::string& place) {
    const bool is_whole = value.is_number() && value.get<double>() >= 0 &&
                          value.get<double>() == std::floor(value.get<double>());
    if (!is_whole) wrong_value(place, "a whole number from 0", value);
    return static_cast<int64_t>(std::min(value.get<double>(), 1e15));
}

std::string text_of(const Json& value, const std::string& place) {
    if (!value.is_string()) wrong_value(place, "a text", value);
    return value.get<std::string>();
}

// A name as a part of a JSON pointer.
std::string pointer_part(const std::string& name) {
    std::string part = "/";
    for (const char c : name) part += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return part;
}

// A part's name: the other way, and %HH as a URI's fragment has it.
std::string name_of(std::string_view part) {
    std::string name;
    for (size_t i = 0; i < part.size(); ++i) {
        unsigned value = 0;
        const char* const digits = part.data() + i + 1;
        const bool is_byte = part[i] == '%' && i + 2 < part.size() &&
                             std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
        name += is_byte ? static_cast<char>(value) : part[i];
        if (is_byte) i += 2;
    }
    std::string plain;
    for (size_t i = 0; i < name.size(); ++i) {
        const bool escapes = name[i] == '~' && i + 1 < name.size();
        plain += !escapes ? name[i] : name[i + 1] == '1' ? '/' : '~';
        if (escapes) ++i;
    }
    return plain;
}

}  // namespace

const Json& SchemaReader::resolve(const std::string& pointer) const {
    const Json* at = &root_;
    const std::string_view parts = std::string_view(pointer).substr(1);
    for (size_t begin = 0; begin < parts.size();) {
        const size_t end = std::min(parts.find('/', begin + 1), parts.size());
        const std::string name = name_of(parts.substr(begin + 1, end - begin - 1));
        size_t index = 0;
        const char* const last = name.data() + name.size();
        if (at->is_object() && at->contains(name))
            at = &(*at)[name];
        else if (at->is_array() && std::from_chars(name.data(), last, index).ptr == last &&
                 !name.empty() && index < at->size())
            at = &(*at)[index];
        else
            fail("schema: $ref ", pointer, ": there is no such place");
        begin = end;
    }
    return *at;
}

int32_t SchemaReader::at(const std::string& pointer) {
    const auto [place, is_new] = known_.try_emplace(pointer, static_cast<int32_t>(schemas_.size()));
    if (is_new) {
        schemas_.emplace_back();
        schemas_.back().pointer = pointer;
        is_read_.push_back(false);
    }
    return place->second;
}

const Subschema& SchemaReader::operator[](int32_t id) {
    Subschema& schema = schemas_[static_cast<size_t>(id)];
    if (is_read_[static_cast<size_t>(id)]) return schema;
    is_read_[static_cast<size_t>(id)] = true;
    const Json& value = resolve(schema.pointer);
    if (value.is_boolean())
        schema.never = !value.get<bool>();
    else if (value.is_object())
        for (const auto& [keyword, one] : value.items()) read(keyword, one, schema);
    else
        wrong_value(schema.pointer, "a schema (an object, true or false)", value);
    if (value.is_object() && schema.types && value.value("nullable", Json()) == true)
        *schema.types |= kJsonNull;
    return schema;
}

const CharAutomaton& SchemaReader::pattern(const std::string& pattern) {
    auto known = patterns_.find(pattern);
    if (known == patterns_.end()) known = patterns_.emplace(pattern, any_match(pattern)).first;
    return known->second;
}

void SchemaReader::check_pattern(const std::string& text, const std::string& place) {
    try {
        pattern(text);
    } catch (const Error& why) {
        fail("schema: ", place, ": ", why.what());
    }
}

void SchemaReader::read(const std::string& keyword, const Json& value, Subschema& schema) {
    if (contains(kAnnotations, keyword) || keyword.starts_with("x-")) return;
    if (read_number_keyword(keyword, value, schema)) {
        schema.speaks_of |= kJsonNumber;
    } else if (read_string_keyword(keyword, value, schema)) {
        schema.speaks_of |= kJsonString;
    } else if (read_object_keyword(keyword, value, schema)) {
        schema.speaks_of |= kJsonObject;
    } else if (read_array_keyword(keyword, value, schema)) {
        schema.speaks_of |= kJsonArray;
    } else if (!read_other_keyword(keyword, value, schema)) {
        fail("schema: ", schema.pointer, ": the keyword ", keyword, " is not supported");
    }
}

bool SchemaReader::read_number_keyword(const std::string& keyword, const Json& value,
                                       Subschema& schema) {
    const bool is_least = keyword == "minimum" || keyword == "exclusiveMinimum";
    const bool is_most = keyword == "maximum" || keyword == "exclusiveMaximum";
    if (!is_least && !is_most && keyword != "multipleOf") return false;
    const std::string place = schema.pointer + "/" + keyword;
    if (!value.is_number() || !std::isfinite(value.get<double>()))
        wrong_value(place, "a number", value);
    if (is_least) schema.least.push_back({value, keyword[0] == 'e'});
    if (is_most) schema.most.push_back({value, keyword[0] == 'e'});
    if (is_least || is_most) return true;
    require(value.get<double>() > 0, "schema: ", place, ": expected a number above 0, found ",
            value.dump());
    schema.multiple_of.push_back(value);
    return true;
}

bool SchemaReader::read_string_keyword(const std::string& keyword, const Json& value,
                                       Subschema& schema) {
    const std::string place = schema.pointer + "/" + keyword;
    if (keyword == "minLength")
        schema.min_length = count_of(value, place);
    else if (keyword == "maxLength")
        schema.max_length = count_of(value, place);
    else if (keyword == "pattern")
        schema.patterns.push_back(text_of(value, place)),
            check_pattern(schema.patterns.back(), place);
    else if (keyword == "format")
        schema.format = text_of(value, place);
    else
        return false;
    return true;
}

bool SchemaReader::read_object_keyword(const std::string& keyword, const Json& value,
                                       Subschema& schema) {
    const std::string place = schema.pointer + "/" + keyword;
    if (keyword == "properties") {
        schema.properties = read_map(value, place);
        schema.has_properties = true;
    } else if (keyword == "patternProperties") {
        schema.pattern_properties = read_map(value, place);
        for (const auto& [name, unused] : schema.pattern_properties) check_pattern(name, place);
        schema.has_properties = true;
    } else if (keyword == "additionalProperties") {
        schema.additional = at(place);
    } else if (keyword == "required") {
        if (!value.is_array()) wrong_value(place, "a list of texts", value);
        for (const Json& name : value) schema.required.push_back(text_of(name, place));
    } else if (keyword == "minProperties") {
        schema.min_properties = count_of(value, place);
    } else if (keyword == "maxProperties") {
        schema.max_properties = count_of(value, place);
    } else {
        return false;
    }
    return true;
}

bool SchemaReader::read_array_keyword(const std::string& keyword, const Json& value,
                                      Subschema& schema) {
    const std::string place = schema.pointer + "/" + keyword;
    if (keyword == "items") {
        require(!value.is_array(), "schema: ", place,
                ": expected a schema, found a list; write prefixItems");
        schema.items = at(place);
    } else if (keyword == "prefixItems") {
        schema.prefix_items = read_list(value, place);
    } else if (keyword == "minItems") {
        schema.min_items = count_of(value, place);
    } else if (keyword == "maxItems") {
        schema.max_items = count_of(value, place);
    } else if (keyword == "uniqueItems") {
        require(value == false, "schema: ", schema.pointer,
                ": the keyword uniqueItems is not supported, except false");
    } else {
        return false;
    }
    return true;
}

bool SchemaReader::read_other_keyword(const std::string& keyword, const Json& value,
                                      Subschema& schema) {
    const std::string place = schema.pointer + "/" + keyword;
    if (keyword == "type") {
        schema.types = 0;
        for (const Json& name : value.is_array() ? value : Json::array({value}))
            *schema.types |= type_named(name, place);
    } else if (keyword == "enum" || keyword == "const") {
        const bool is_list = keyword == "enum";
        if (is_list && !value.is_array()) wrong_value(place, "a list", value);
        const Json list = is_list ? value : Json::array({value});
        schema.values.emplace_back(list.begin(), list.end());
    } else if (keyword == "nullable") {
        if (!value.is_boolean()) wrong_value(place, "true or false", value);
    } else if (keyword == "allOf") {
        const std::vector<int32_t> all = read_list(value, place);
        schema.all.insert(schema.all.end(), all.begin(), all.end());
    } else if (keyword == "anyOf" || keyword == "oneOf") {
        const bool exclusive = keyword == "oneOf";
        schema.groups.push_back(
            {exclusive ? "oneOf" : "anyOf", read_list(value, place), exclusive});
    } else if (keyword == "$ref") {
        const std::string target = text_of(value, place);
        require(target == "#" || target.starts_with("#/"), "schema: ", place,
                ": only places of the same schema are supported, as #/$defs/NAME (found ", target,
                ")");
        schema.all.push_back(at(target));
    } else if (keyword == "$id") {
        // Inside, it would be the base of the places that $ref names.
        require(schema.pointer == "#", "schema: ", schema.pointer,
                ": the keyword $id is not supported, except in the whole schema");
    } else {
        return false;
    }
    return true;
}

std::vector<std::pair<std::string, int32_t>> SchemaReader::read_map(const Json& value,
                                                                    const std::string& place) {
    if (!value.is_object()) wrong_value(place, "an object of schemas", value);
    std::vector<std::pair<std::string, int32_t>> map;
    for (const auto& [name, one] : value.items())
        map.emplace_back(name, at(place + pointer_part(name)));
    return map;
}

std::vector<int32_t> SchemaReader::read_list(const Json& value, const std::string& place) {
    if (!value.is_array() || value.empty()) wrong_value(place, "a list of schemas", value);
    std::vector<int32_t> list;
    for (size_t i = 0; i < value.size(); ++i) list.push_back(at(concat(place, "/", i)));
    return list;
}

}  // namespace hark
