#include "core/json/json.h"

#include "core/error.h"

namespace hark {

namespace {

constexpr int kDeepest = 64;

// Whether arrays and objects are nested deeper than kDeepest. Brackets in strings do not count.
bool is_too_deep(std::string_view text) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') in_string = !in_string;
        if (in_string && c == '\\') ++i;
        if (in_string) continue;
        if ((c == '[' || c == '{') && ++depth > kDeepest) return true;
        if (c == ']' || c == '}') --depth;
    }
    return false;
}

// The parser's own callback could count the depth, but with one it looks through all elements of an
// array after each object in it.
void check_depth(std::string_view text, const std::string& where) {
    if (is_too_deep(text)) fail(where, ": JSON is nested deeper than ", kDeepest, " levels");
}

// Says why text that Python's json reads is refused: half of a surrogate pair has no UTF-8.
void check_surrogates(std::string_view text, const std::string& where) {
    try {
        const auto unused = nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& wrong) {
        const std::string_view why = wrong.what();
        require(why.find("invalid string: surrogate U+") == why.npos, where,
                ": a string has half of a surrogate pair (\\ud800 to \\udfff)");
    }
}

template <class Json>
Json parsed(std::string_view text, const std::string& where) {
    check_depth(text, where);
    Json root = Json::parse(text, nullptr, false);
    if (root.is_discarded()) check_surrogates(text, where);
    return root;
}

template <class Json>
Json parsed_object(std::string_view text, const std::string& where) {
    Json root = parsed<Json>(text, where);
    require(root.is_object(), where, ": expected a JSON object, found ", json_kind(root));
    return root;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where) {
    return parsed<nlohmann::json>(text, where);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where) {
    return parsed<nlohmann::ordered_json>(text, where);
}

nlohmann::json parse_json_object(std::string_view text, const std::string& where) {
    return parsed_object<nlohmann::json>(text, where);
}

nlohmann::ordered_json parse_ordered_json_object(std::string_view text, const std::string& where) {
    return parsed_object<nlohmann::ordered_json>(text, where);
}

double number_or_zero(const nlohmann::ordered_json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace hark
