// JSON: nlohmann/json with its classes compiled once, in json_classes.cc. Include this in place of
// <nlohmann/json.hpp>: a source that compiles them itself takes up to four seconds longer.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hark {

// The parsed text, or a discarded value (is_discarded()) where it is not JSON. Throws Error that
// begins with `where` for arrays and objects nested deeper than any file of ours needs (copying
// and printing such a value would use up the stack), and for half of a surrogate pair.
nlohmann::json parse_json(std::string_view text, const std::string& where);
// The same; objects keep the order of their keys.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where);

// The same, for an object. Throws Error for other values and for text that is not JSON.
nlohmann::json parse_json_object(std::string_view text, const std::string& where);
nlohmann::ordered_json parse_ordered_json_object(std::string_view text, const std::string& where);

// What a message says was found: "array", "number", ..., or "text that is not JSON".
template <class Json>
const char* json_kind(const Json& value) {
    return value.is_discarded() ? "text that is not JSON" : value.type_name();
}

// The value's text, on one line unless `indent` is 0 or more. Bytes that are not UTF-8 become
// U+FFFD.
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// The object's number of that name; 0 if there is none.
double number_or_zero(const nlohmann::ordered_json& object, const char* key);

}  // namespace hark

namespace hark::json_classes {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using StringReader = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;

}  // namespace hark::json_classes

// clang-format off
#define HARK_JSON_CLASSES_OF(TEMPLATE, JSON)                                                       \
    TEMPLATE class nlohmann::detail::serializer<JSON>;                                             \
    TEMPLATE class nlohmann::detail::json_sax_dom_parser<JSON>;                                    \
    TEMPLATE class nlohmann::detail::json_sax_dom_callback_parser<JSON>;                           \
    TEMPLATE class nlohmann::detail::iter_impl<const JSON>;                                        \
    TEMPLATE class nlohmann::detail::lexer<JSON, hark::json_classes::StringReader>;                \
    TEMPLATE class nlohmann::detail::parser<JSON, hark::json_classes::StringReader>;               \
    TEMPLATE class std::vector<JSON>;

#define HARK_JSON_CLASSES(TEMPLATE)                                                                \
    TEMPLATE class nlohmann::basic_json<>;                                                         \
    TEMPLATE class nlohmann::basic_json<nlohmann::ordered_map>;                                    \
    TEMPLATE class std::map<std::string, nlohmann::json, std::less<>>;                             \
    HARK_JSON_CLASSES_OF(TEMPLATE, hark::json_classes::Json)                                       \
    HARK_JSON_CLASSES_OF(TEMPLATE, hark::json_classes::OrderedJson)
// clang-format on

HARK_JSON_CLASSES(extern template)
