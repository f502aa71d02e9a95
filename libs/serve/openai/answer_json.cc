#include "serve/openai/answer_json.h"

#include <ctime>
#include <random>

#include "gpt/answers/answer_line.h"
#include "serve/openai/events.h"
#include "text/utf8.h"

namespace hark::serve {
namespace {

using nlohmann::ordered_json;

std::string random_name() {
    static std::random_device device;
    constexpr char kDigits[] = "0123456789abcdef";
    std::string name;
    for (int word = 0; word < 3; ++word)
        for (unsigned value = device(), i = 0; i < 8; ++i, value >>= 4) name += kDigits[value & 15];
    return name;
}

const char* object_of(const AnswerHead& head, bool is_part) {
    if (!head.is_chat) return "text_completion";
    return is_part ? "chat.completion.chunk" : "chat.completion";
}

ordered_json root_of(const AnswerHead& head, bool is_part, const ordered_json& choices) {
    return {{"id", head.id},
            {"object", object_of(head, is_part)},
            {"created", head.created},
            {"model", head.model},
            {"choices", choices}};
}

ordered_json reason_or_null(const std::string& reason) {
    return reason.empty() ? ordered_json() : ordered_json(reason);
}

std::string text_of_token(int32_t id, const Tokenizer& tokenizer) {
    return tokenizer.has(id) ? replace_invalid(tokenizer.bytes_of(id)) : std::string();
}

}  // namespace

AnswerHead new_answer_head(const std::string& model, bool is_chat) {
    return {.id = (is_chat ? "chatcmpl-" : "cmpl-") + random_name(),
            .model = model,
            .created = static_cast<int64_t>(std::time(nullptr)),
            .is_chat = is_chat};
}

ordered_json usage_json(const TokenUsage& usage) {
    return {{"prompt_tokens", usage.prompt},
            {"completion_tokens", usage.generated},
            {"total_tokens", usage.prompt + usage.generated},
            {"prompt_tokens_details", {{"cached_tokens", usage.cached}}}};
}

ordered_json choice_json(const AnswerHead& head, int64_t index, const gpt::AnswerParts& parts,
                         const ordered_json& logprobs, const std::string& finish_reason) {
    ordered_json choice = {{"index", index}};
    if (head.is_chat) {
        const bool has_calls = !parts.tool_calls.is_null();
        ordered_json& message = choice["message"] = {{"role", "assistant"}};
        message["content"] =
            has_calls && parts.text.empty() ? ordered_json() : ordered_json(parts.text);
        message["refusal"] = nullptr;
        if (!parts.reasoning.empty()) message["reasoning_content"] = parts.reasoning;
        if (has_calls) message["tool_calls"] = parts.tool_calls;
    } else {
        choice["text"] = parts.text;
    }
    choice["logprobs"] = logprobs;
    choice["finish_reason"] = finish_reason;
    return choice;
}

ordered_json part_json(int64_t index, bool is_chat, const ordered_json& delta,
                       const ordered_json& logprobs, const std::string& finish_reason) {
    return {{"index", index},
            {is_chat ? "delta" : "text", delta},
            {"logprobs", logprobs},
            {"finish_reason", reason_or_null(finish_reason)}};
}

std::string answer_text(const AnswerHead& head, const ordered_json& choices,
                        const TokenUsage& usage) {
    ordered_json root = root_of(head, false, choices);
    root["usage"] = usage_json(usage);
    return json_text(root);
}

std::string event_text(const AnswerHead& head, const ordered_json& choices,
                       const ordered_json* usage) {
    ordered_json root = root_of(head, true, choices);
    if (usage) root["usage"] = *usage;
    return event_of(root);
}

ordered_json completion_logprobs(const gpt::Completion& part, const Tokenizer& tokenizer,
                                 size_t offset) {
    ordered_json tokens = ordered_json::array(), logprobs = tokens, top = tokens, offsets = tokens;
    for (size_t i = 0; i < part.tokens.size(); ++i) {
        const std::string text = text_of_token(part.tokens[i], tokenizer);
        tokens.push_back(text);
        logprobs.push_back(gpt::finite_logprob(part.logprobs[i]));
        offsets.push_back(offset);
        offset += count_code_points(text);
        ordered_json& likeliest = top.emplace_back(ordered_json::object());
        if (i < part.likeliest.size())
            for (const gpt::TokenLogprob& one : part.likeliest[i])
                likeliest[text_of_token(one.token, tokenizer)] = gpt::finite_logprob(one.logprob);
    }
    return {{"tokens", tokens},
            {"token_logprobs", logprobs},
            {"top_logprobs", top},
            {"text_offset", offsets}};
}

ordered_json echoed_logprobs(const gpt::Completion& prompt, const gpt::Completion& answer,
                             const Tokenizer& tokenizer) {
    gpt::Completion whole = prompt;
    whole.tokens.insert(whole.tokens.end(), answer.tokens.begin(), answer.tokens.end());
    whole.logprobs.insert(whole.logprobs.end(), answer.logprobs.begin(), answer.logprobs.end());
    whole.likeliest.insert(whole.likeliest.end(), answer.likeliest.begin(), answer.likeliest.end());
    ordered_json root = completion_logprobs(whole, tokenizer, 0);
    // Nothing comes before the first token.
    root["token_logprobs"][0] = root["top_logprobs"][0] = nullptr;
    return root;
}

std::string base64_of(const std::vector<float>& vector) {
    constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::string bytes(reinterpret_cast<const char*>(vector.data()),
                            vector.size() * sizeof(float));
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t word = 0;
        for (size_t j = 0; j < 3; ++j)
            word =
                word << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
        for (size_t j = 0; j < 4; ++j)
            text += i + j > bytes.size() ? '=' : kDigits[word >> (18 - 6 * j) & 63];
    }
    return text;
}

}  // namespace hark::serve
