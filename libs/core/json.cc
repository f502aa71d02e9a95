#include "core/json.h"

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

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where) {
    check_depth(text, where);
    return nlohmann::json::parse(text, nullptr, false);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where) {
    check_depth(text, where);
    return nlohmann::ordered_json::parse(text, nullptr, false);
}

}  // namespace hark
