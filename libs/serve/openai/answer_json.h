// Answers of language models in OpenAI's forms.
#pragma once

#include <string>

#include "gpt/answers/answer_parts.h"

namespace hark::serve {

// What all answers to one request have in common.
struct AnswerHead {
    std::string id;  // "chatcmpl-..." or "cmpl-..."
    std::string model;
    int64_t created = 0;  // seconds since 1970
    bool is_chat = false;
};
// With an id that no other answer has.
AnswerHead new_answer_head(const std::string& model, bool is_chat);

struct TokenUsage {
    int64_t prompt = 0, cached = 0, generated = 0;
};
nlohmann::ordered_json usage_json(const TokenUsage& usage);

// One of the request's answers, whole; of a chat with its parts, else with its text.
nlohmann::ordered_json choice_json(const AnswerHead& head, int64_t index,
                                   const gpt::AnswerParts& parts,
                                   const nlohmann::ordered_json& logprobs,
                                   const std::string& finish_reason);
// A part of it that is streamed. `delta` is a chat's; of a completion its text. An empty reason:
// the answer has not ended.
nlohmann::ordered_json part_json(int64_t index, bool is_chat, const nlohmann::ordered_json& delta,
                                 const nlohmann::ordered_json& logprobs,
                                 const std::string& finish_reason);

// The whole answer, and an event of a streamed one: "data: {...}\n\n".
std::string answer_text(const AnswerHead& head, const nlohmann::ordered_json& choices,
                        const TokenUsage& usage);
std::string event_text(const AnswerHead& head, const nlohmann::ordered_json& choices,
                       const nlohmann::ordered_json* usage);

// The tokens' log probabilities in the form of completions, as the older API has them; the tokens'
// texts begin at `offset` of the answer's. In the form of chats: gpt::logprobs_json().
nlohmann::ordered_json completion_logprobs(const gpt::Completion& part, const Tokenizer& tokenizer,
                                           size_t offset);
// The same of a prompt that has been scored and of the answer to it.
nlohmann::ordered_json echoed_logprobs(const gpt::Completion& prompt, const gpt::Completion& answer,
                                       const Tokenizer& tokenizer);

// A vector as the base64 of little-endian float32.
std::string base64_of(const std::vector<float>& vector);

}  // namespace hark::serve
