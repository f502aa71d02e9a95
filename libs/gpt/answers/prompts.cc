#include "gpt/answers/prompts.h"

#include <utility>

#include "core/error.h"
#include "core/json/json.h"
#include "text/utf8.h"

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;

std::string filled(const std::string& prompt_template, const std::string& input) {
    if (prompt_template.empty()) return input;
    std::string text;
    size_t at = 0;
    for (size_t hole; (hole = prompt_template.find("{}", at)) != std::string::npos; at = hole + 2)
        text += prompt_template.substr(at, hole - at) + input;
    return text + prompt_template.substr(at);
}

// The error of the stage before: a text, or an object with one.
std::string message_of(const ordered_json& error) {
    const bool has_message = error.is_object() && error.contains("message");
    const ordered_json& text = has_message ? error["message"] : error;
    const bool says = text.is_string() && !text.get_ref<const std::string&>().empty();
    return says ? text.get<std::string>() : "the stage before failed";
}

}  // namespace

std::string wrong_messages(const ordered_json& root) {
    const ordered_json messages = root.value("messages", ordered_json());
    if (!messages.is_array() || messages.empty()) return "expected messages, a list of objects";
    for (const ordered_json& message : messages)
        if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
            return "messages: expected objects, each with a text named role";
    if (root.contains("tools") && !root["tools"].is_array() && !root["tools"].is_null())
        return concat("tools: expected a list, found ", root["tools"].type_name());
    if (!root.contains("documents") || root["documents"].is_null()) return "";
    const ordered_json& documents = root["documents"];
    if (!documents.is_array())
        return concat("documents: expected a list of objects, found ", documents.type_name());
    for (const ordered_json& document : documents)
        if (!document.is_object())
            return concat("documents: expected objects, found ", document.type_name());
    return "";
}

PromptReader::PromptReader(ByteReader& in, PromptFormat format, std::string prompt_template,
                           bool takes_messages, Utf8Check::Warn warn)
    : lines_(in, format == PromptFormat::whole,
             format == PromptFormat::jsonl ? Utf8Check::Warn() : std::move(warn)),
      format_(format),
      template_(std::move(prompt_template)),
      takes_messages_(takes_messages) {}

void PromptReader::parse(const std::string& line, Prompt& prompt) const {
    ordered_json root;
    try {
        root = parse_ordered_json(line, "the line");
    } catch (const Error& why) {
        return prompt.fail("invalid_json", why.what());
    }
    if (!root.is_object())
        return prompt.fail("invalid_json",
                           concat("expected a JSON object, found ", json_kind(root)));
    ordered_json metadata = ordered_json::parse(prompt.metadata);
    const auto has = [&](const char* key) { return root.contains(key) && !root[key].is_null(); };
    for (const char* key : {"id", "source", "start", "end"})
        if (has(key)) metadata[key] = root[key];
    prompt.metadata = json_text(metadata);
    if (!metadata["id"].is_string() && !metadata["id"].is_number())
        return prompt.fail("invalid_value", concat("id: expected a text or a number, found ",
                                                   metadata["id"].type_name()));
    if (has("error")) return prompt.fail("earlier_stage", message_of(root["error"]));
    const bool has_messages = has("messages"), has_prompt = has("prompt");
    const char* key = has_prompt ? "prompt" : "text";
    if (has_messages) {
        std::string wrong =
            takes_messages_ ? wrong_messages(root) : std::string("messages need --chat");
        if (!wrong.empty()) return prompt.fail("invalid_value", std::move(wrong));
        prompt.messages = root["messages"];
        if (root.contains("tools")) prompt.tools = root["tools"];
        if (root.contains("documents")) prompt.documents = root["documents"];
    } else if (!has(key)) {
        return prompt.fail("missing_prompt",
                           "expected a string named prompt or text, found neither");
    } else if (!root[key].is_string()) {
        return prompt.fail("invalid_value",
                           concat(key, ": expected a string, found ", root[key].type_name()));
    } else {
        prompt.text = root[key].get<std::string>();
    }
    // A line with `text` is a transcript's segment, whose temperature is that of its decoding.
    if (!has_messages && !has_prompt) return;
    std::string wrong = prompt.settings.read(root);
    if (!wrong.empty()) prompt.fail("invalid_value", std::move(wrong));
}

std::optional<Prompt> PromptReader::next() {
    const bool is_jsonl = format_ == PromptFormat::jsonl;
    std::optional<std::string> input = lines_.next("the prompt");
    // Blank lines between objects are skipped.
    while (is_jsonl && input && input->empty()) input = lines_.next();
    if (!input) return std::nullopt;
    Prompt prompt;
    prompt.metadata = ordered_json{{"id", lines_.number() - 1}}.dump();
    if (format_ != PromptFormat::whole) prompt.where = lines_.where();
    if (is_jsonl)
        parse(*input, prompt);
    else
        prompt.text = replace_invalid(*input);
    if (!prompt.text.empty()) prompt.text = filled(template_, prompt.text);
    return prompt;
}

}  // namespace hark::gpt
