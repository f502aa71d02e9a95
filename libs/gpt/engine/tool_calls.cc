#include "gpt/engine/tool_calls.h"

#include <algorithm>

#include "core/error.h"

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kBegin = "<tool_call>", kEnd = "</tool_call>";

// A discarded value if it is not JSON, or nested too deeply. Objects keep their order.
ordered_json parsed(std::string_view text) {
    try {
        return parse_ordered_json(text, "");
    } catch (const Error&) {
        return ordered_json(ordered_json::value_t::discarded);
    }
}

// Appends the call, or the calls of a list; false, and nothing is appended, if it is none.
bool append_calls(const ordered_json& value, ordered_json& calls) {
    const ordered_json list = value.is_array() ? value : ordered_json::array({value});
    ordered_json found = ordered_json::array();
    for (const ordered_json& one : list) {
        if (!one.is_object() || !one.contains("name") || !one["name"].is_string()) return false;
        const char* const key = one.contains("arguments") ? "arguments" : "parameters";
        if (!one.contains(key) || !one[key].is_object()) return false;
        found.push_back({{"id", concat("call_", calls.size() + found.size())},
                         {"type", "function"},
                         {"function",
                          {{"name", one["name"]},
                           {"arguments", one[key].dump(-1, ' ', false,
                                                       ordered_json::error_handler_t::replace)}}}});
    }
    calls.insert(calls.end(), found.begin(), found.end());
    return !found.empty();
}

}  // namespace

ordered_json take_tool_calls(std::string& text) {
    ordered_json calls = ordered_json::array();
    if (const size_t at = text.find_first_not_of(" \n"); at != text.npos && text[at] == '{') {
        if (append_calls(parsed(text), calls)) text.clear();
    }
    std::string rest;
    size_t at = 0;
    for (size_t begin; (begin = text.find(kBegin, at)) != text.npos;) {
        const size_t from = begin + kBegin.size(), end = text.find(kEnd, from);
        if (end == text.npos) break;
        const bool is_call =
            append_calls(parsed(std::string_view(text).substr(from, end - from)), calls);
        const size_t after = end + kEnd.size();
        rest += text.substr(at, (is_call ? begin : after) - at);
        if (is_call) rest.erase(rest.find_last_not_of('\n') + 1);
        at = after;
    }
    text = rest + text.substr(at);
    return calls.empty() ? ordered_json() : calls;
}

}  // namespace hark::gpt
