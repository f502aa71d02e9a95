#include "text/chat_messages.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include "core/error.h"
#include "core/json/json.h"
#include "text/chat_template.h"

namespace hark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 3> kReasoningFields = {"reasoning_content", "thinking",
                                                         "reasoning"};

// The message with its reasoning under both names that templates read.
Json with_reasoning(const Json& message) {
    const Json* reasoning = nullptr;
    for (const char* field : kReasoningFields)
        if (!reasoning && message.contains(field)) reasoning = &message[field];
    if (!reasoning) return message;
    Json named = Json::object();
    named["thinking"] = *reasoning;
    for (const auto& [key, value] : message.items()) named[key] = value;
    named["reasoning_content"] = *reasoning;
    return named;
}

bool is_text_part(const Json& part) {
    return part.is_object() && part.value("type", Json()) == "text" && part.contains("text") &&
           part["text"].is_string();
}

}  // namespace

nlohmann::ordered_json normalized_messages(const nlohmann::ordered_json& messages) {
    Json normalized = Json::array();
    for (const Json& message : messages) {
        Json kept = Json::object();
        for (const auto& [key, value] : message.items())
            if (!value.is_null()) kept[key] = value;
        normalized.push_back(with_reasoning(kept));
    }
    return normalized;
}

void join_text_parts(nlohmann::ordered_json& messages) {
    for (Json& message : messages) {
        if (!message.contains("content") || !message["content"].is_array()) continue;
        std::string text;
        bool all_text = true;
        bool is_first = true;
        for (const Json& part : message["content"]) {
            all_text = all_text && is_text_part(part);
            if (!all_text) break;
            text += (is_first ? "" : "\n") + part["text"].get<std::string>();
            is_first = false;
        }
        if (all_text) message["content"] = text;
    }
}

bool parse_call_arguments(nlohmann::ordered_json& messages) {
    bool any = false;
    for (Json& message : messages) {
        if (!message.contains("tool_calls") || !message["tool_calls"].is_array()) continue;
        for (Json& call : message["tool_calls"]) {
            if (!call.is_object() || !call.contains("function")) continue;
            Json& function = call["function"];
            if (!function.is_object() || !function.contains("arguments")) continue;
            Json& arguments = function["arguments"];
            if (!arguments.is_string()) continue;
            Json parsed = parse_ordered_json(arguments.get<std::string>(), "tool call");
            if (!parsed.is_object()) continue;
            arguments = std::move(parsed);
            any = true;
        }
    }
    return any;
}

std::tm template_time() {
    std::tm now{};
    std::time_t seconds = std::time(nullptr);
    const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
    if (!fixed || !*fixed) {
        ::localtime_r(&seconds, &now);
        return now;
    }
    const std::string_view text = fixed;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), seconds);
    require(result.ec == std::errc{} && result.ptr == text.data() + text.size() &&
                ::gmtime_r(&seconds, &now) != nullptr,
            "SOURCE_DATE_EPOCH: expected seconds since 1970 (got ", text, ")");
    return now;
}

}  // namespace hark
