// An answer as a line of JSON (docs/formats.md, Answers).
#pragma once

#include <string>

#include "gpt/answers/answer_parts.h"

namespace hark::gpt {

// The prompt's metadata, then the answer with the sample's number; log probabilities if `options`
// has them. The tokenizer knows the answer's tokens.
std::string answer_line(const Prompt& prompt, int64_t sample, const Completion& answer,
                        const AnswerParts& parts, const GenerateOptions& options,
                        const Tokenizer& tokenizer);
// The log probabilities of an answer's tokens, or of a part of them, in OpenAI's form for chats.
nlohmann::ordered_json logprobs_json(const Completion& answer, const Tokenizer& tokenizer);
// A log probability as JSON has it, which has no infinity: at least the lowest that OpenAI writes.
double finite_logprob(double logprob);
// The prompt's metadata and its error.
std::string error_line(const Prompt& prompt);

}  // namespace hark::gpt
