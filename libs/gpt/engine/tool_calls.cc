#include "gpt/engine/tool_calls.h"

#include <algorithm>

#include "core/error.h"

namespace hark::gpt {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view kBegin = "<tool_call>", kEnd = "</tool_call>";

// A discarded value if it is not JSON, or nested too deeply. Objects keep their order.
json parsed(std::string_view text) {
    try {
        if (parse_json(text, "").is_discarded()) return json(json::value_t::discarded);
    } catch (const Error&) {
        return json(json::value_t::discarded);
    }
    return json::parse(text, nullptr, false);
}

// Appends the call, or the calls of a list; false, and nothing is appended, if it is none.
bool append_calls(const json& value, json& calls) {
    const json list = value.is_array() ? value : json::array({value});
    json found = json::array();
    for (const json& one : list) {
        if (!one.is_object() || !one.contains("name") || !one["name"].is_string()) return false;
        const char* const key = one.contains("arguments") ? "arguments" : "parameters";
        if (!one.contains(key) || !one[key].is_object()) return false;
        found.push_back(
            {{"id", concat("call_", calls.size() + found.size())},
             {"type", "function"},
             {"function",
              {{"name", one["name"]},
               {"arguments", one[key].dump(-1, ' ', false, json::error_handler_t::replace)}}}});
    }
    calls.insert(calls.end(), found.begin(), found.end());
    return !found.empty();
}

}  // namespace

json take_tool_calls(std::string& text) {
    json calls = json::array();
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
    return calls.empty() ? json() : calls;
}

}  // namespace hark::gpt
