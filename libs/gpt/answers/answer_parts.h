// An answer's parts: its reasoning, the calls of tools, and the text that is left.
#pragma once

#include <string>

#include "gpt/answers/answer_text.h"
#include "gpt/answers/prompts.h"
#include "gpt/chat/extract.h"
#include "gpt/chat/reasoning.h"

namespace hark::gpt {

enum class Reasoning {
    show,      // in the text, with its markers
    hide,      // nowhere
    separate,  // on stderr, or in a field of its own
};

struct AnswerPartsOptions {
    const ReasoningMarkers* markers = nullptr;  // nullptr: all text is the answer
    Reasoning reasoning = Reasoning::separate;
    Extract extract = Extract::nothing;
};

struct AnswerParts {
    std::string text;                   // that is written
    std::string said;                   // what the next turn of a chat repeats
    std::string reasoning;              // with Reasoning::separate
    nlohmann::ordered_json tool_calls;  // OpenAI's form; or null
};

// Sets the prompt's error if there is nothing to extract.
AnswerParts answer_parts(Prompt& prompt, const Completion& answer,
                         const AnswerPartsOptions& options);

}  // namespace hark::gpt
