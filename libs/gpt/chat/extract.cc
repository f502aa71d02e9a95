#include "gpt/chat/extract.h"

#include <algorithm>

#include "core/error.h"
#include "core/json/json.h"

namespace hark::gpt {
namespace {

constexpr size_t kMostIndent = 3;  // of a fence
constexpr size_t kDeepest = 256;   // brackets within brackets of a JSON value
constexpr std::string_view kSpaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(kSpaces);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

struct Fence {
    char character = 0;  // ` or ~
    size_t length = 0, indent = 0;
    std::string_view info;  // what follows it on the line
};

// nullopt if the line is no fence.
std::optional<Fence> fence_of(std::string_view line) {
    Fence fence;
    fence.indent = std::min(line.find_first_not_of(' '), line.size());
    if (fence.indent > kMostIndent || fence.indent == line.size()) return std::nullopt;
    fence.character = line[fence.indent];
    if (fence.character != '`' && fence.character != '~') return std::nullopt;
    const size_t end = std::min(line.find_first_not_of(fence.character, fence.indent), line.size());
    fence.length = end - fence.indent;
    fence.info = trimmed(line.substr(end));
    const bool is_code_span = fence.character == '`' && fence.info.find('`') != fence.info.npos;
    if (fence.length < 3 || is_code_span) return std::nullopt;
    return fence;
}

// The next line with its line end; moves `at` past it.
std::string_view next_line(std::string_view text, size_t& at) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    at = end;
    return line;
}

bool is_json(std::string_view text) {
    try {
        return !parse_json(text, "").is_discarded();
    } catch (const Error&) {  // nested too deeply
        return false;
    }
}

// The end of the object or list that begins at `begin`, by its brackets outside strings; npos if it
// has none.
size_t end_of_value(std::string_view text, size_t begin) {
    std::string open;
    bool in_string = false;
    for (size_t i = begin; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (open.size() == kDeepest) return text.npos;
            open += c;
        } else if (c == '}' || c == ']') {
            if (open.back() != (c == '}' ? '{' : '[')) return text.npos;
            open.pop_back();
            if (open.empty()) return i + 1;
        }
    }
    return text.npos;
}

}  // namespace

Extract extract_of(std::string_view name) {
    return name == "code" ? Extract::code : name == "json" ? Extract::json : Extract::nothing;
}

std::optional<std::string> first_code_block(std::string_view text) {
    std::optional<Fence> open;
    std::string content;
    for (size_t at = 0; at < text.size();) {
        const std::string_view line = next_line(text, at);
        const std::optional<Fence> fence =
            fence_of(line.substr(0, line.find_last_not_of("\r\n") + 1));
        if (!open) {
            open = fence;
            continue;
        }
        if (fence && fence->character == open->character && fence->length >= open->length &&
            fence->info.empty())
            return content;
        content += line.substr(std::min({line.find_first_not_of(' '), open->indent, line.size()}));
    }
    return std::nullopt;
}

std::optional<std::string> first_json(std::string_view text) {
    text = trimmed(text);
    if (!text.empty() && is_json(text)) return std::string(text);
    for (size_t at = 0; (at = text.find_first_of("{[", at)) != text.npos; ++at) {
        const size_t end = end_of_value(text, at);
        if (end == text.npos) continue;
        const std::string_view value = text.substr(at, end - at);
        if (is_json(value)) return std::string(value);
    }
    return std::nullopt;
}

}  // namespace hark::gpt
