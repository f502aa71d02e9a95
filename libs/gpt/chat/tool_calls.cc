#include "gpt/chat/tool_calls.h"

#include <algorithm>

#include "core/error.h"

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kBegin = "<tool_call>", kEnd = "</tool_call>";
// Mistral's.
constexpr std::string_view kCalls = "[TOOL_CALLS]", kCallId = "[CALL_ID]", kArguments = "[ARGS]";

// A discarded value if it is not JSON, or nested too deeply. Objects keep their order.
ordered_json parsed(std::string_view text) {
    try {
        return parse_ordered_json(text, "");
    } catch (const Error&) {
        return ordered_json(ordered_json::value_t::discarded);
    }
}

ordered_json call_of(const std::string& id, const std::string& name, const std::string& arguments) {
    return {
        {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

// Appends the call, or the calls of a list; false, and nothing is appended, if it is none.
bool append_calls(const ordered_json& value, ordered_json& calls) {
    const ordered_json list = value.is_array() ? value : ordered_json::array({value});
    ordered_json found = ordered_json::array();
    for (const ordered_json& one : list) {
        if (!one.is_object() || !one.contains("name") || !one["name"].is_string()) return false;
        const char* const key = one.contains("arguments") ? "arguments" : "parameters";
        if (!one.contains(key) || !one[key].is_object()) return false;
        const bool has_id = one.contains("id") && one["id"].is_string();
        const std::string id =
            has_id ? one["id"].get<std::string>() : concat("call_", calls.size() + found.size());
        found.push_back(call_of(id, one["name"].get<std::string>(), json_text(one[key])));
    }
    calls.insert(calls.end(), found.begin(), found.end());
    return !found.empty();
}

// NAME[ARGS]{...} or NAME[CALL_ID]ID[ARGS]{...}; false, and nothing is appended, if it is neither.
bool append_named_call(std::string_view text, ordered_json& calls) {
    const size_t end = text.find(kArguments);
    if (end == text.npos) return false;
    const std::string_view head = text.substr(0, end);
    const size_t id = std::min(head.find(kCallId), head.size());
    const ordered_json arguments = parsed(text.substr(end + kArguments.size()));
    if (id == 0 || !arguments.is_object()) return false;
    calls.push_back(call_of(id == head.size() ? concat("call_", calls.size())
                                              : std::string(head.substr(id + kCallId.size())),
                            std::string(head.substr(0, id)), json_text(arguments)));
    return true;
}

// Cuts out Mistral's calls: [TOOL_CALLS] before a list, or before each named call.
void take_marked_calls(std::string& text, ordered_json& calls) {
    std::string rest = text.substr(0, text.find(kCalls));
    for (size_t begin = rest.size(); begin < text.size();) {
        const size_t from = begin + kCalls.size(),
                     end = std::min(text.find(kCalls, from), text.size());
        std::string_view call = std::string_view(text).substr(from, end - from);
        call.remove_prefix(std::min(call.find_first_not_of(" \n"), call.size()));
        const bool is_json = call.starts_with('[') || call.starts_with('{');
        if (!(is_json ? append_calls(parsed(call), calls) : append_named_call(call, calls)))
            rest += text.substr(begin, end - begin);
        begin = end;
    }
    if (rest.size() == text.size()) return;
    text = rest.substr(0, rest.find_last_not_of('\n') + 1);
}

}  // namespace

ordered_json openai_calls(const std::vector<ToolText>& texts) {
    ordered_json calls = ordered_json::array();
    for (const ToolText& one : texts) {
        const ordered_json object = parsed(one.arguments);
        calls.push_back(call_of(concat("call_", calls.size()), one.name,
                                object.is_object() ? json_text(object) : one.arguments));
    }
    return calls.empty() ? ordered_json() : calls;
}

std::vector<int32_t> tool_call_tokens(const Tokenizer& tokenizer) {
    std::vector<int32_t> ids;
    for (const std::string_view text : {kCalls, kCallId, kArguments})
        if (const auto id = tokenizer.id_of(text); id && tokenizer.is_special(*id))
            ids.push_back(*id);
    return ids;
}

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
    if (text.find(kCalls) != text.npos) take_marked_calls(text, calls);
    return calls.empty() ? ordered_json() : calls;
}

}  // namespace hark::gpt
