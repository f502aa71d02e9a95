#include "gpt/answers/answer_line.h"

#include <algorithm>
#include <cmath>

namespace hark::gpt {
namespace {

using nlohmann::ordered_json;

ordered_json token_json(int32_t id, double logprob, const Tokenizer& tokenizer) {
    const std::string bytes = tokenizer.has(id) ? tokenizer.bytes_of(id) : std::string();
    ordered_json values = ordered_json::array();
    for (const char byte : bytes) values.push_back(static_cast<unsigned char>(byte));
    return {
        {"token", replace_invalid(bytes)}, {"logprob", finite_logprob(logprob)}, {"bytes", values}};
}

// A measured value, rounded; null for 0, which stands for an unknown one.
ordered_json measured(double value, double per_unit) {
    return value > 0 ? ordered_json(std::round(value * per_unit) / per_unit) : ordered_json();
}

}  // namespace

double finite_logprob(double logprob) { return std::max(logprob, -9999.0); }

ordered_json logprobs_json(const Completion& answer, const Tokenizer& tokenizer) {
    ordered_json content = ordered_json::array();
    for (size_t i = 0; i < answer.tokens.size(); ++i) {
        ordered_json token = token_json(answer.tokens[i], answer.logprobs[i], tokenizer);
        ordered_json& top = token["top_logprobs"] = ordered_json::array();
        if (i < answer.likeliest.size())
            for (const TokenLogprob& one : answer.likeliest[i])
                top.push_back(token_json(one.token, one.logprob, tokenizer));
        content.push_back(std::move(token));
    }
    return {{"content", content}};
}

std::string answer_line(const Prompt& prompt, int64_t sample, const Completion& answer,
                        const AnswerParts& parts, const GenerateOptions& options,
                        const Tokenizer& tokenizer) {
    ordered_json root = ordered_json::parse(prompt.metadata);
    root["index"] = sample;
    root["text"] = parts.text;
    if (!parts.reasoning.empty()) root["reasoning"] = parts.reasoning;
    if (!parts.tool_calls.is_null()) root["tool_calls"] = parts.tool_calls;
    root["tokens"] = answer.tokens;
    // A call that was cut off is none.
    const bool calls = !parts.tool_calls.is_null() && answer.finish == Finish::end_of_text;
    root["finish_reason"] = prompt.empty() ? "stop" : calls ? "tool_calls" : name_of(answer.finish);
    root["prompt_tokens"] = answer.prompt_tokens;
    root["cached_tokens"] = answer.cached_tokens;
    root["completion_tokens"] = answer.tokens.size();
    root["seconds_to_first_token"] = measured(answer.seconds_to_first_token, 1e6);
    root["tokens_per_second"] = measured(answer.tokens_per_second, 100);
    if (options.logprobs) root["logprobs"] = logprobs_json(answer, tokenizer);
    return json_text(root) + "\n";
}

std::string error_line(const Prompt& prompt) {
    ordered_json root = ordered_json::parse(prompt.metadata);
    root["error"] = {{"message", prompt.error}, {"code", prompt.error_code}};
    return json_text(root) + "\n";
}

}  // namespace hark::gpt
