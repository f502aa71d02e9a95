#include "gpt/engine/prompts.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "text/lines.h"

namespace hark::gpt {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t kPiece = size_t{1} << 16;

std::string filled(const std::string& prompt_template, const std::string& input) {
    if (prompt_template.empty()) return input;
    std::string text;
    size_t at = 0;
    for (size_t hole; (hole = prompt_template.find("{}", at)) != std::string::npos; at = hole + 2)
        text += prompt_template.substr(at, hole - at) + input;
    return text + prompt_template.substr(at);
}

// What is wrong with the messages and tools of a line; empty: nothing.
std::string wrong_messages(const json& root, bool takes_messages) {
    if (!takes_messages) return "messages need --chat";
    const json& messages = root["messages"];
    if (!messages.is_array() || messages.empty()) return "expected messages, a list of objects";
    for (const json& message : messages)
        if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
            return "messages: expected objects, each with a text named role";
    if (root.contains("tools") && !root["tools"].is_array() && !root["tools"].is_null())
        return concat("tools: expected a list, found ", root["tools"].type_name());
    return "";
}

}  // namespace

PromptReader::PromptReader(ByteReader& in, PromptFormat format, std::string prompt_template,
                           bool takes_messages)
    : in_(in),
      format_(format),
      template_(std::move(prompt_template)),
      takes_messages_(takes_messages) {}

// The next line without its line end; with PromptFormat::whole all of the stream without the line
// ends at its end.
std::optional<std::string> PromptReader::line() {
    const bool whole = format_ == PromptFormat::whole;
    size_t end = whole ? std::string::npos : ahead_.find('\n', taken_);
    while (!ended_ && end == std::string::npos && ahead_.size() - taken_ <= kMaxLineBytes) {
        // Erase returned bytes once per piece, not once per line.
        ahead_.erase(0, std::exchange(taken_, 0));
        const size_t have = ahead_.size();
        ahead_.resize(have + kPiece);
        const size_t got = in_.read_some(ahead_.data() + have, kPiece);
        ahead_.resize(have + got);
        ended_ = got == 0;
        if (!whole) end = ahead_.find('\n', have);
    }
    if (taken_ == ahead_.size()) return std::nullopt;
    if (end == std::string::npos) end = ahead_.size();
    require(end - taken_ <= kMaxLineBytes, in_.name(),
            whole ? ": the prompt" : concat(": line ", count_ + 1, ": the line"),
            " is longer than ", kMaxLineBytes >> 20, " MiB");
    std::string text = ahead_.substr(taken_, end - taken_);
    taken_ = std::min(end + 1, ahead_.size());
    while (text.ends_with('\r') || (whole && text.ends_with('\n'))) text.pop_back();
    return text;
}

Prompt PromptReader::parse(const std::string& line) const {
    Prompt prompt;
    const json root = parse_json(line, concat(in_.name(), ": line ", count_));
    const auto text_at = [&](const char* key) {
        return root.contains(key) && root[key].is_string() ? root[key].get<std::string>() : "";
    };
    if (!root.is_object()) {
        prompt.error = concat(in_.name(), ": line ", count_, ": expected a JSON object, found ",
                              root.is_discarded() ? "text that is not JSON" : root.type_name());
        return prompt;
    }
    json passed = json::object();
    for (const char* key : {"id", "source", "start", "end"})
        if (root.contains(key)) passed[key] = root[key];
    prompt.metadata = passed.dump();
    const char* key = root.contains("prompt") ? "prompt" : "text";
    prompt.error = text_at("error");
    if (!prompt.error.empty()) return prompt;
    if (root.contains("messages")) {
        const std::string wrong = wrong_messages(root, takes_messages_);
        if (!wrong.empty()) prompt.error = concat(in_.name(), ": line ", count_, ": ", wrong);
        if (wrong.empty()) prompt.messages = root["messages"];
        if (wrong.empty() && root.contains("tools")) prompt.tools = root["tools"];
        return prompt;
    }
    if (!root.contains(key) || !root[key].is_string())
        prompt.error = concat(in_.name(), ": line ", count_,
                              ": expected a string named prompt or text, found neither");
    prompt.text = text_at(key);
    return prompt;
}

std::optional<Prompt> PromptReader::next() {
    std::optional<std::string> input = line();
    ++count_;
    // Blank lines between objects are skipped.
    while (format_ == PromptFormat::jsonl && input && input->empty()) {
        input = line();
        ++count_;
    }
    if (!input) return std::nullopt;
    Prompt prompt =
        format_ == PromptFormat::jsonl ? parse(*input) : Prompt{replace_invalid(*input)};
    if (!prompt.text.empty()) prompt.text = filled(template_, prompt.text);
    return prompt;
}

std::string json_line(const Prompt& prompt, const Completion& answer, bool logprobs) {
    json root = json::parse(prompt.metadata);
    if (!prompt.error.empty()) {
        root["error"] = prompt.error;
    } else {
        if (prompt.messages.is_null()) root["prompt"] = prompt.text;
        root["text"] = answer.text;
        root["tokens"] = answer.tokens;
        root["finish_reason"] = prompt.empty() ? "empty_prompt" : name_of(answer.finish);
        if (logprobs) root["logprobs"] = answer.logprobs;
    }
    return root.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace hark::gpt
