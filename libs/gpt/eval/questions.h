// Questions of published test sets, lines of JSON, as the prompts that lm-eval scores them with.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"
#include "gpt/eval/choices.h"
#include "text/tokenizer.h"

namespace hark::gpt {

struct TextQuestion {
    std::string context;
    std::vector<std::string> choices;
    int64_t label = 0;
};

// The tasks whose lines are questions: hellaswag, arc, mmlu, choice (docs/evaluation.md).
const std::vector<std::string>& question_tasks();
// Reads a line of the task. Throws Error naming the field: missing, of another type, out of range.
// Source of the prompts: lm-eval 0.4.13, lm_eval/tasks/{hellaswag,arc,mmlu}.
TextQuestion read_question(const std::string& task, const nlohmann::json& line);

// The question's tokens: a space joins context and choice. An empty context is the token that
// begins a text (prefix_token). Throws Error if a choice has no token of its own, or does not fit
// `positions`.
ChoiceQuestion encode_question(const Tokenizer& tokenizer, const TextQuestion& question,
                               int64_t positions);

// The token that a text's first one is predicted from: the tokenizer's beginning of text, else its
// end. Throws Error if it has neither.
int32_t prefix_token(const Tokenizer& tokenizer);

}  // namespace hark::gpt
